// The count of a job's failures against its failure budget.
#ifndef RENDEZVOUS_POLICY_FAILURE_COUNTER_H_
#define RENDEZVOUS_POLICY_FAILURE_COUNTER_H_

#include <deque>

#include "absl/time/time.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::policy {

// Counts failures within a sliding window. Not thread-safe.
class FailureCounter {
 public:
  explicit FailureCounter(FailureBudget budget) : budget_(budget) {}

  // Counts one failure. Returns false if it exceeds the budget.
  bool Count(absl::Time now);
  // The number of further failures that the budget allows now.
  int Left(absl::Time now) const;
  int total() const { return total_; }
  const FailureBudget& budget() const { return budget_; }

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("times_ns", times_, "total", total_);
  }

 private:
  const FailureBudget budget_;
  std::deque<absl::Time> times_;  // within the window
  int total_ = 0;
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_FAILURE_COUNTER_H_
