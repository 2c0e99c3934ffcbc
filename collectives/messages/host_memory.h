// The memory of another process of this host, read without its help.
#ifndef COLLECTIVES_MESSAGES_HOST_MEMORY_H_
#define COLLECTIVES_MESSAGES_HOST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectives/messages/flow.h"

namespace hvd::collectives::messages {

// What a process shows of itself in shared memory.
struct MemoryCard {
  // Shows that the bytes at `address` in this process are `cookie`.
  void FillIn(const uint64_t* own_cookie);

  int64_t process = 0;
  uint64_t address = 0;
  uint64_t cookie = 0;
};

// By process_vm_readv, which the kernel permits or not. `card` is borrowed, and filled in before
// the first call.
class HostMemory : public PeerMemory {
 public:
  explicit HostMemory(const MemoryCard& card) : card_(card) {}

  // Asks the kernel once. The number of a process in another PID namespace is another process here,
  // so the cookie is compared, too.
  bool Available() override;
  bool Read(uint64_t address, char* to, size_t bytes) override;

 private:
  const MemoryCard& card_;
  std::optional<bool> available_;
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_HOST_MEMORY_H_
