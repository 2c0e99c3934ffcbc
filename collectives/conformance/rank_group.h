// A group of ranks that are threads of the test process.
#ifndef COLLECTIVES_CONFORMANCE_RANK_GROUP_H_
#define COLLECTIVES_CONFORMANCE_RANK_GROUP_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/backend.h"

namespace hvd::collectives::conformance {

// Calls work(rank) for every rank in a separate thread; returns when all have returned.
void ForEachRank(int size, absl::FunctionRef<void(int)> work);

// Ranks in threads of this process, connected by a backend on the loopback address.
class RankGroup {
 public:
  explicit RankGroup(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  // Connects all ranks; rank r has secrets[r]. Returns the statuses by rank and keeps the
  // communicators of the ranks that were connected.
  std::vector<absl::Status> Connect(const std::vector<std::string>& secrets,
                                    absl::Duration timeout = absl::Seconds(60));
  // The same with one secret; aborts the test process unless all are connected.
  void Connect(int size);

  Communicator& at(int rank) { return *communicators_[rank]; }
  // Destroys the rank's communicator.
  void Destroy(int rank) { communicators_[rank].reset(); }
  // Calls work(communicator) on all ranks concurrently.
  void Run(absl::FunctionRef<void(Communicator&)> work);
  // The number of key exchanges of all ranks together in the last Connect().
  int key_exchanges() const { return key_exchanges_; }
  // The number of values that these exchanges returned.
  size_t shown_keys() const { return shown_keys_; }

 private:
  const std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  uint64_t epoch_ = 0;
  int key_exchanges_ = 0;
  size_t shown_keys_ = 0;
};

}  // namespace hvd::collectives::conformance

#endif  // COLLECTIVES_CONFORMANCE_RANK_GROUP_H_
