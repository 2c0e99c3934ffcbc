// The failure budget of a job, and the cooldown of its slots.
#ifndef RENDEZVOUS_POLICY_RESTART_BUDGET_H_
#define RENDEZVOUS_POLICY_RESTART_BUDGET_H_

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::policy {

// Counts failures within a moving window. Not thread-safe.
class RestartBudget {
 public:
  explicit RestartBudget(FailureBudget budget) : budget_(budget) {}

  // Counts one. False: it exceeds the budget.
  bool Spend(absl::Time now);
  // How many more the budget allows now.
  int Left(absl::Time now) const;
  int total() const { return total_; }
  const FailureBudget& budget() const { return budget_; }

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("spent_ns", spent_, "total", total_);
  }

 private:
  const FailureBudget budget_;
  std::deque<absl::Time> spent_;  // within the window
  int total_ = 0;
};

// The health of each slot: after a failure it rests, longer each time; everything is forgotten
// after a quiet time that follows the rest. Not thread-safe.
class SlotHealth {
 public:
  static constexpr absl::Duration kQuietTime = absl::Minutes(5);

  // Empty: some failures cost no rest; for the others Cooldown's defaults apply.
  explicit SlotHealth(std::optional<Cooldown> cooldown) : cooldown_(cooldown) {}

  // Returns the rest that this failure costs. Without an explicit cooldown, `free` failures in a
  // row cost none.
  absl::Duration Failed(const std::string& host, int slot, int free, absl::Time now);
  // No slot has ever failed.
  bool empty() const { return slots_.empty(); }
  // InfinitePast if the slot may be used.
  absl::Time RestsUntil(const std::string& host, int slot, absl::Time now) const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("slots", slots_);
  }

 private:
  struct Slot {
    int failures = 0;
    absl::Time last;
    absl::Time rests_until;

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [failures, last, rests_until] = *this;
      fields("failures", failures, "last_ns", last, "rests_until_ns", rests_until);
    }
  };
  // The slot's failures no longer count.
  static bool Forgiven(const Slot& health, absl::Time now) {
    return now - std::max(health.last, health.rests_until) > kQuietTime;
  }

  const std::optional<Cooldown> cooldown_;
  std::map<std::pair<std::string, int>, Slot> slots_;
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_RESTART_BUDGET_H_
