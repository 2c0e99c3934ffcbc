// The key exchange of ranks that are threads of one process, for tests.
#ifndef COLLECTIVES_CONFORMANCE_MEMORY_KEY_EXCHANGE_H_
#define COLLECTIVES_CONFORMANCE_MEMORY_KEY_EXCHANGE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "collectives/key_exchange.h"

namespace hvd::collectives::conformance {

// The shared table of one group's ranks. Safe for concurrent use; outlives the exchanges made from
// it.
class KeyExchangeTable {
 public:
  explicit KeyExchangeTable(int size) : size_(size) {}

  std::unique_ptr<KeyExchange> ForRank(int rank);
  // The number of calls of all ranks together.
  int calls() const;
  // The number of values that all these calls returned.
  size_t shown() const;

 private:
  class RankExchange;

  const int size_;
  mutable absl::Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t shown_ ABSL_GUARDED_BY(mutex_) = 0;
  // By key, then by rank.
  std::map<std::string, std::map<int, std::string>> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::collectives::conformance

#endif  // COLLECTIVES_CONFORMANCE_MEMORY_KEY_EXCHANGE_H_
