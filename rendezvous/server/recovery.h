// Takes a job up from its journal.
#ifndef RENDEZVOUS_SERVER_RECOVERY_H_
#define RENDEZVOUS_SERVER_RECOVERY_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/membership/membership.h"

namespace hvd {

struct Recovered {
  std::unique_ptr<Membership> machine;  // as it was after the newest event
  bool had_events = false;              // else the job has just begun
  absl::Time newest;                    // event's time, or the job's start
  std::optional<Verdict> verdict;       // the job has ended
};

// Applies what the journal holds to a new machine. Effects have been carried out before, or are
// made up for by Restarted, and so come to nothing; but `on_notice` (may be null) is told of
// notices.
//   Errors as Journal::Replay.
absl::StatusOr<Recovered> Recover(const JobSpec& spec, Journal& journal,
                                  const std::function<void(const Notice&, absl::Time)>& on_notice);

}  // namespace hvd

#endif  // RENDEZVOUS_SERVER_RECOVERY_H_
