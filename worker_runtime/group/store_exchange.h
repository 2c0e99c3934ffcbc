// The key exchange over a key-value store that the caller brings, such as the store of
// torch.distributed.
#ifndef WORKER_RUNTIME_GROUP_STORE_EXCHANGE_H_
#define WORKER_RUNTIME_GROUP_STORE_EXCHANGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/key_exchange.h"

namespace hvd::worker_runtime::group {

// A key-value store that all ranks of a group share.
class Store {
 public:
  virtual ~Store() = default;

  // Errors: the store's.
  virtual absl::Status Set(const std::string& key, absl::string_view value) = 0;
  // Blocks until some rank has set the key.
  // Errors:
  //   - DeadlineExceeded: nobody has within `timeout`.
  //   - Others: the store's.
  virtual absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) = 0;
};

// Rank 0 collects the values and sets the result of a round, so that a round of n ranks needs a few
// requests of each and no n*n of them. Not thread-safe.
// Errors:
//   - Internal: the store has returned what no rank has set.
//   - Others: those of Store.
class StoreExchange : public collectives::KeyExchange {
 public:
  // `store` must outlive it. No two groups may use the same keys of a store.
  StoreExchange(Store& store, int rank, int size) : store_(store), rank_(rank), size_(size) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;
  absl::StatusOr<Selected> Gather(absl::string_view key, absl::string_view value,
                                  const std::vector<int>& ranks, absl::Duration timeout) override;

 private:
  // Rank 0: returns the values of all ranks.
  absl::StatusOr<std::vector<std::string>> Collect(absl::string_view key, absl::string_view own,
                                                   absl::Duration timeout);

  Store& store_;
  const int rank_;
  const int size_;
};

}  // namespace hvd::worker_runtime::group

#endif  // WORKER_RUNTIME_GROUP_STORE_EXCHANGE_H_
