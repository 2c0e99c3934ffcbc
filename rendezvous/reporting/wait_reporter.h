// The schedule of messages about what a job waits for, so that the console is not silent during a
// long wait. Pure.
#ifndef RENDEZVOUS_REPORTING_WAIT_REPORTER_H_
#define RENDEZVOUS_REPORTING_WAIT_REPORTER_H_

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"

namespace hvd::rendezvous::reporting {

// "waiting for host b to attach; this wait ends in 25s at the latest". `left`: InfiniteDuration if
// there is no limit.
std::string WithPatience(absl::string_view explanation, absl::Duration left);

// A wait is reported only after it has lasted for a while, since short waits are normal. Kinds of
// waits: hosts that must attach, workers that must get ready, a member that does not ask for the
// next world or does not call hvd.init(), and a worker that still runs after the others have
// finished. The message is repeated at increasing intervals, and earlier if its text changes. Not
// thread-safe.
class WaitReporter {
 public:
  // The time between two checks while the job waits, and otherwise.
  static constexpr absl::Duration kPollInterval = absl::Seconds(3);
  static constexpr absl::Duration kIdlePollInterval = absl::Seconds(60);
  static constexpr absl::Duration kPause = absl::Seconds(30);  // between two messages; doubles
  static constexpr absl::Duration kLongestPause = absl::Minutes(10);  // ... up to this
  static constexpr absl::Duration kChangePause = absl::Seconds(10);   // if the text has changed

  // Checks the job. Returns a line to print, or an empty string.
  std::string Check(const membership::Membership::View& view, absl::Time now);

  // Makes the next check due soon.
  void WakeUp(absl::Time now) { due_ = std::min(due_, now + kPollInterval); }

  // When Check must be called again; InfinitePast before the first time.
  absl::Time NextDue() const { return due_; }

 private:
  using Wait = membership::Membership::Wait;
  struct Waiting {
    Wait kind = Wait::kNothing;
    // `kind` is kNothing, but some workers still run after the others have finished.
    bool last_ones = false;
    std::string text;
  };

  static Waiting Find(const membership::Membership::View& view);
  static absl::Duration Patience(const Waiting& waiting);
  bool IsDue(const Waiting& waiting, absl::Time now) const;

  Waiting waiting_;   // as last reported, or at its start
  absl::Time since_;  // since when the kind is the same
  absl::Time told_ = absl::InfinitePast();
  absl::Duration pause_;  // from the last message to the next
  absl::Time due_ = absl::InfinitePast();
};

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_WAIT_REPORTER_H_
