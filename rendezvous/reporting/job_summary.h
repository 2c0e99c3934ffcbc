// A running summary of a job for users: a line for each event, and a summary at the end; both from
// notices, whose texts are sentences. Pure.
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
  // `min_workers`: with fewer than these a job can't go on. `so_far`: the tally of a job that
  // another daemon has led before.
  explicit JobSummary(int min_workers, JobTally so_far = {})
      : min_workers_(min_workers), tally_(std::move(so_far)) {}

  struct Line {
    std::string text;        // without a newline; never empty
    bool important = false;  // for all users, not only for those of verbose output
  };
  // Adds the notice and returns its line.
  Line Add(const membership::Notice& notice, absl::Time now);

  // See JobTally.
  std::string Summary() const { return tally_.Summary(); }

 private:
  // `before`: the number of workers that remained of the world.
  Line Failed(const membership::Notice& notice, int before) const;
  std::string FailedText(const membership::Notice& notice) const;

  const int min_workers_;
  JobTally tally_;
};

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_JOB_SUMMARY_H_
