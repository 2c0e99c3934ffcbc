// The detector of deadlocks: every rank is blocked on an operation that some other rank, blocked as
// well, has not submitted.
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
// A rank announces that it is blocked when one of its threads has waited for a while; each later
// announcement replaces that. It counts only if the rank has carried out the newest plan, so that
// no plan under way can wake the rank. Another thread of the rank may still submit the missing
// operation; therefore a deadlock is broken only after `patience`.
class DeadlockDetector {
 public:
  DeadlockDetector(int size, absl::Duration patience);

  // Records that `rank`, having carried out all plans up to seen_sequence, is blocked on these
  // names; none: it is not blocked.
  void SetBlocked(int rank, std::vector<std::string> names, uint64_t seen_sequence);

  // Updates the state after an announcement or a plan. `last_sequence` is that of the newest plan.
  void Update(const Readiness& readiness, uint64_t last_sequence, absl::Time now);

  // When Break is due if nothing changes; InfiniteFuture: there is no deadlock.
  absl::Time deadline() const { return since_ + patience_; }

  // Breaks the deadlock: removes its operations from the table, and returns their failure, whose
  // message says which rank waits for what. REQUIRES: deadline() <= now, right after Update.
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
