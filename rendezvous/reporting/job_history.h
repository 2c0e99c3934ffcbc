// The history of a job: counts of notices by kind and the newest notices, for status and metrics.
#ifndef RENDEZVOUS_REPORTING_JOB_HISTORY_H_
#define RENDEZVOUS_REPORTING_JOB_HISTORY_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/reporting/job_tally.h"

namespace hvd::rendezvous::reporting {

// A plain value. Pure.
class JobHistory {
 public:
  // The number of newest notices that are kept.
  static constexpr size_t kRecent = 20;

  struct Entry {
    membership::Notice notice;
    absl::Time time;

    template <typename Fields>
    void Keep(Fields& fields) {
      fields("notice", notice, "time_ns", time);
    }
  };

  void Observe(const membership::Notice& notice, absl::Time time);

  uint64_t count(membership::Notice::Kind kind) const { return counts_[static_cast<size_t>(kind)]; }
  // When the newest world formed.
  std::optional<absl::Time> newest_world() const { return newest_world_; }
  const std::deque<Entry>& recent() const { return recent_; }  // oldest first

  const JobTally& tally() const { return tally_; }

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("counts", counts_, "newest_world_ns", newest_world_, "recent", recent_, "tally", tally_);
  }

 private:
  std::array<uint64_t, 32> counts_{};  // by kind; larger than the number of kinds
  std::optional<absl::Time> newest_world_;
  std::deque<Entry> recent_;
  JobTally tally_;
};

// A snapshot of a job for reports.
struct JobReport {
  std::string job_id;
  membership::Membership::View view;
  JobHistory history;
  absl::Time now;  // on the time line of `history`
};

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_JOB_HISTORY_H_
