// A job as its journal keeps it: recovered from there, and saved for it.
#ifndef RENDEZVOUS_SERVER_SAVED_JOB_H_
#define RENDEZVOUS_SERVER_SAVED_JOB_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/reporting/job_history.h"

namespace hvd::rendezvous::server {

struct Recovered {
  std::unique_ptr<membership::Membership> machine;  // as it was after the newest event
  reporting::JobHistory history;                    // likewise
  bool had_events = false;                          // else the job has just begun
  absl::Time newest;                                // event's time, or the job's start
  std::optional<membership::Verdict> verdict;       // the job has ended
};

// Loads the journal's contents into a new machine. The effects have been carried out before, or
// Restarted makes up for them; here they only go into the history.
// Errors:
//   - DataLoss: the snapshot is not one of such a job.
//   - Others: those of Journal::Replay.
absl::StatusOr<Recovered> Recover(const policy::JobSpec& spec, journal::Journal& journal);

// The contents of the journal's snapshots.
std::string SaveJob(const membership::Membership& machine, const reporting::JobHistory& history);

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_SAVED_JOB_H_
