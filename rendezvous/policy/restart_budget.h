// The failure budget of a job.
#ifndef RENDEZVOUS_POLICY_RESTART_BUDGET_H_
#define RENDEZVOUS_POLICY_RESTART_BUDGET_H_

#include <deque>

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

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_RESTART_BUDGET_H_
