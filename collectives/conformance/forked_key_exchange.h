// The key exchange of ranks that are forked processes, for tests and benchmarks: a table in shared
// memory.
#ifndef COLLECTIVES_CONFORMANCE_FORKED_KEY_EXCHANGE_H_
#define COLLECTIVES_CONFORMANCE_FORKED_KEY_EXCHANGE_H_

#include <string>
#include <vector>

#include "collectives/key_exchange.h"

namespace hvd::collectives::conformance {

// Made before the forks; then each process sets its own rank. Aborts the process if there is no
// memory. A rank that dies within an exchange blocks the others.
class ForkedKeyExchange : public KeyExchange {
 public:
  explicit ForkedKeyExchange(int size);
  ~ForkedKeyExchange() override;

  void set_rank(int rank) { rank_ = rank; }

  // Errors:
  //   - Internal: the value has more than 16 KB.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

 private:
  struct Shared;
  struct Slot;

  size_t bytes() const;

  const int size_;
  int rank_ = 0;
  Shared* shared_;
  Slot* slots_;  // by rank
};

}  // namespace hvd::collectives::conformance

#endif  // COLLECTIVES_CONFORMANCE_FORKED_KEY_EXCHANGE_H_
