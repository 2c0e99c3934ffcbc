// The statistics of a job for its final summary line, collected from notices. Pure.
#ifndef RENDEZVOUS_REPORTING_JOB_TALLY_H_
#define RENDEZVOUS_REPORTING_JOB_TALLY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::reporting {

// "12 steps and 3.2s of work". Steps are 0 unless an optimizer counts them.
std::string WorkText(uint64_t steps, absl::Duration time);

// A plain value, which is part of the journal's snapshots. Not thread-safe.
class JobTally {
 public:
  void Observe(const membership::Notice& notice, absl::Time now);

  int worlds() const { return worlds_; }
  // The newest world's number, its size, and how many of its members are known to run.
  Epoch epoch() const { return epoch_; }
  int size() const { return size_; }
  int remaining() const { return remaining_; }

  // The time without a world since the first one, up to `now`.
  absl::Duration WithoutWorld(absl::Time now) const {
    return without_world_ + (broken_since_.has_value()
                                 ? std::max(absl::ZeroDuration(), now - *broken_since_)
                                 : absl::ZeroDuration());
  }

  // The cause of a worker's failure, extracted from a notice's text, and the number of failures
  // with that cause.
  static std::string CauseOf(absl::string_view text);
  int failures_by(const std::string& cause) const {
    const auto found = causes_.find(cause);
    return found == causes_.end() ? 0 : found->second;
  }

  // Returns one line, without a newline: the worlds, the failures by cause, the hosts that joined
  // and left, the rollbacks and the time without a world. Empty if there was no world.
  std::string Summary() const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("worlds", worlds_, "epoch", epoch_, "size", size_, "remaining", remaining_, "causes",
           causes_, "failures", failures_, "hosts_joined", hosts_joined_, "hosts_left", hosts_left_,
           "drains_overrun", drains_overrun_, "hosts_lost", hosts_lost_, "rolled_back",
           rolled_back_, "broken_since_ns", broken_since_, "breaks", breaks_, "rollbacks",
           rollbacks_, "without_world_ns", without_world_, "longest_break_ns", longest_break_,
           "commit", commit_, "lost_steps", lost_steps_, "lost_time_ns", lost_time_, "starts_anew",
           starts_anew_);
  }

 private:
  void Fail(const membership::Notice& notice);
  void Form(const membership::Notice& notice, absl::Time now);
  void Begin(const membership::Notice& notice);
  void Break(absl::Time now);

  int worlds_ = 0;
  Epoch epoch_;
  int size_ = 0;
  int remaining_ = 0;
  std::map<std::string, int> causes_;
  int failures_ = 0;
  int hosts_joined_ = 0;  // after the first world
  int hosts_left_ = 0;
  int drains_overrun_ = 0;
  int hosts_lost_ = 0;
  bool rolled_back_ = true;  // since training last began; before that there is no work to lose
  std::optional<absl::Time> broken_since_;
  int breaks_ = 0;
  int rollbacks_ = 0;
  absl::Duration without_world_;
  absl::Duration longest_break_;
  uint64_t commit_ = 0;  // the one from which the newest world has started
  uint64_t lost_steps_ = 0;
  absl::Duration lost_time_;
  bool starts_anew_ = false;  // the members of the newest world: what a break costs is unknown
};

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_JOB_TALLY_H_
