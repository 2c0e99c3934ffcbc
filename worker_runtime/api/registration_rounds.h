// The key exchange for the registration of a process set. It runs in rounds; in each round all
// ranks of the world exchange one text by an allgather on the world's engine.
#ifndef WORKER_RUNTIME_API_REGISTRATION_ROUNDS_H_
#define WORKER_RUNTIME_API_REGISTRATION_ROUNDS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/key_exchange.h"
#include "worker_runtime/engine/engine.h"

namespace hvd::worker_runtime::api {

// Runs one round: returns the texts of all ranks in rank order. Every rank of the world must call
// it at the same point of its registrations. Blocks until all ranks have called it.
// Errors:
//   - InvalidArgument: the ranks wait for different operations (a deadlock).
//   - All errors of Engine::Submit and Engine::Wait.
absl::StatusOr<std::vector<std::string>> GatherTexts(engine::Engine& world, int world_size,
                                                     absl::string_view text);

// The key exchange of the future members of a set. The other ranks of the world take part in the
// rounds by calling Finish. One object per registration; not thread-safe.
class RegistrationRounds : public collectives::KeyExchange {
 public:
  // `members`: ranks of the world, sorted. `world` must outlive this.
  RegistrationRounds(engine::Engine& world, int world_size, std::vector<int> members)
      : world_(world), world_size_(world_size), members_(std::move(members)) {}

  // Runs one round; returns the members' values. Members must call it with the same keys in the
  // same order. `timeout` is ignored: a member either answers or fails with its world.
  // Errors:
  //   - The error with which another member has called Finish.
  //   - Internal: the members are at different keys.
  //   - All errors of GatherTexts.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

  // Takes part in rounds until all members have called it. Every rank of the world must call it,
  // members after their last AllGather, other ranks at once with OK. Returns OK if all members
  // passed OK; else, on every rank, the error of the first member that did not.
  absl::Status Finish(const absl::Status& own);

 private:
  struct Word;
  // Runs one round; returns the members' messages in the order of members_.
  absl::StatusOr<std::vector<Word>> Exchange(const Word& own);
  // Returns the first error in the messages of members that have finished.
  absl::Status FirstError(const std::vector<Word>& words) const;

  engine::Engine& world_;
  const int world_size_;
  const std::vector<int> members_;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_REGISTRATION_ROUNDS_H_
