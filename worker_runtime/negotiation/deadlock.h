// Ranks that wait for each other in a circle: everyone is blocked on something that somebody else,
// blocked as well, has not submitted.
#ifndef WORKER_RUNTIME_NEGOTIATION_DEADLOCK_H_
#define WORKER_RUNTIME_NEGOTIATION_DEADLOCK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker_runtime/negotiation/messages.h"
#include "worker_runtime/negotiation/readiness.h"

namespace hvd::worker_runtime::negotiation {

// Not thread-safe.
//
// A rank says that it is blocked only when a thread of it has waited for a while, and takes it back
// by anything it submits. What it says counts only if it has carried out every plan that there is,
// so nothing on its way can wake it. What is left is another thread of that rank that may still
// submit something: hence the patience.
class DeadlockDetector {
 public:
  DeadlockDetector(int size, absl::Duration patience);

  // `rank` is blocked on these names now (none: it is not), having carried out all plans up to
  // seen_sequence.
  void SetBlocked(int rank, std::vector<std::string> names, uint64_t seen_sequence);

  // Looks at the state of things after an announcement or a plan. last_sequence: of the newest
  // plan.
  void Update(const Readiness& readiness, uint64_t last_sequence, absl::Time now);

  // When Break is due, if nothing changes; InfiniteFuture if there is no deadlock.
  absl::Time deadline() const { return since_ + patience_; }

  // Ends the deadlock: takes the operations it is about from the table, and says who waits for
  // what. REQUIRES: deadline() <= now, right after Update.
  Failure Break(Readiness& readiness);

 private:
  struct Blocked {
    std::vector<std::string> names;
    uint64_t seen_sequence = 0;
  };

  bool Holds(const Readiness& readiness, uint64_t last_sequence) const;
  std::string Describe(const Readiness& readiness) const;

  const absl::Duration patience_;
  std::vector<Blocked> by_rank_;
  int blocked_count_ = 0;
  absl::Time since_ = absl::InfiniteFuture();
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_DEADLOCK_H_
