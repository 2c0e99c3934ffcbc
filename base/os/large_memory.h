// Uninitialised memory for large buffers, in huge pages.
#ifndef BASE_OS_LARGE_MEMORY_H_
#define BASE_OS_LARGE_MEMORY_H_

#include <cstddef>
#include <memory>

namespace hvd::os {

struct FreeLargeMemory {
  void operator()(char* memory) const;
};
using LargeMemory = std::unique_ptr<char, FreeLargeMemory>;

// Returns at least `bytes` (0 allowed) of uninitialised memory, aligned to a cache line, or nullptr
// if the system refuses. Large buffers are in huge pages where available, because page faults on
// small pages would take longer than filling the buffer. Thread-safe.
LargeMemory AllocateLargeMemory(size_t bytes);

}  // namespace hvd::os

#endif  // BASE_OS_LARGE_MEMORY_H_
