// The failures of an elastic job: their count, the newest one, and those that may be one bug.
#ifndef RENDEZVOUS_MEMBERSHIP_FAILURES_H_
#define RENDEZVOUS_MEMBERSHIP_FAILURES_H_

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/membership/events.h"
#include "rendezvous/membership/workers.h"
#include "rendezvous/policy/failure_counter.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::membership {

// Not thread-safe.
struct Failures {
  // The number of entries of `early`.
  static constexpr size_t kMostEarly = 100;

  explicit Failures(policy::FailureBudget budget) : counted(budget) {}

  // The error text of a failed worker that points to a bug in the script; empty if its host may be
  // the cause.
  std::string Complaint(const Worker& worker) const;
  // Whether a failure before the job's first commit is a bug in the user's script, which no restart
  // will fix: two workers had the same exception, on two machines, or `alone` on the only one. A
  // worker that fails before hvd.init() can't report its exception; its last line on stderr is used
  // instead. Remembers the exception otherwise.
  bool IsUserBug(const Worker& worker, const std::string& machine, bool alone);
  // The verdict on a job that gives up after `why`.
  Verdict GaveUp(const std::string& why) const;

  policy::FailureCounter counted;
  Verdict last;
  // The exceptions before the first commit: text, machine.
  std::vector<std::pair<std::string, std::string>> early;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_FAILURES_H_
