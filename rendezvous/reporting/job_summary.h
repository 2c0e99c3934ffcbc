// The console report of a job: a line for each notice, and a summary at the end. Pure.
#ifndef RENDEZVOUS_REPORTING_JOB_SUMMARY_H_
#define RENDEZVOUS_REPORTING_JOB_SUMMARY_H_

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/reporting/job_tally.h"

namespace hvd::rendezvous::reporting {

// Not thread-safe.
class JobSummary {
 public:
  // `min_workers` is the number without which the job can't continue. `so_far` is the tally from an
  // earlier daemon of this job.
  explicit JobSummary(int min_workers, JobTally so_far = {})
      : min_workers_(min_workers), tally_(std::move(so_far)) {}

  struct Line {
    std::string text;        // without a newline; never empty
    bool important = false;  // shown to all users, not only in verbose output
  };
  // Adds the notice and returns its line.
  Line Add(const membership::Notice& notice, absl::Time now);

  // See JobTally.
  std::string Summary() const { return tally_.Summary(); }

 private:
  // `before` is the number of the world's workers that remained before this failure.
  Line Failed(const membership::Notice& notice, int before) const;
  std::string FailedText(const membership::Notice& notice) const;

  const int min_workers_;
  JobTally tally_;
};

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_JOB_SUMMARY_H_
