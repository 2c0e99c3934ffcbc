// The registration rounds of a process set: in each, every rank of the world shows all others a
// text, over the world's own engine.
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

// Every rank of the world calls it, at the same point of its registrations. Returns all texts in
// rank order. Blocks until all have called, as any operation of the world does.
// Errors:
//   - InvalidArgument: the ranks wait for different operations.
//   - Others: those of Engine::Wait.
absl::StatusOr<std::vector<std::string>> GatherTexts(engine::Engine& world, int world_size,
                                                     absl::string_view text);

// The key exchange of the future members of a set. All other ranks of the world take part without
// values, by Finish. One object per registration; not thread-safe.
class RegistrationRounds : public collectives::KeyExchange {
 public:
  // `members`: ranks of the world, sorted. `world` must outlive this.
  RegistrationRounds(engine::Engine& world, int world_size, std::vector<int> members)
      : world_(world), world_size_(world_size), members_(std::move(members)) {}

  // For members, with the same keys in the same order. The values are the members'. `timeout` is
  // ignored: a member either answers or fails with its world.
  // Errors: those of GatherTexts, or the error with which another member has finished.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

  // Every rank of the world calls it at the end, non-members at once and with OK. Returns when all
  // members have called it: OK if all of them passed OK; else the first one's error, on every rank.
  absl::Status Finish(const absl::Status& own);

 private:
  struct Word;
  // The members' messages of the next round, in their order.
  absl::StatusOr<std::vector<Word>> Exchange(const Word& own);
  // The first error in the messages of those that have finished.
  absl::Status FirstError(const std::vector<Word>& words) const;

  engine::Engine& world_;
  const int world_size_;
  const std::vector<int> members_;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_REGISTRATION_ROUNDS_H_
