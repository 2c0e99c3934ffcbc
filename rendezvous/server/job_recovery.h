// Recovery of a job from its journal, and the contents of the journal's snapshots.
#ifndef RENDEZVOUS_SERVER_JOB_RECOVERY_H_
#define RENDEZVOUS_SERVER_JOB_RECOVERY_H_

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
  bool had_events = false;                          // false: the job has just begun
  absl::Time newest;                                // time of the newest event, or the job's start
  std::optional<membership::Verdict> verdict;       // empty: the job has not ended
};

// Replays the journal into a new machine. The effects of the replayed events are not carried out:
// the earlier process has done so, or the Restarted event that follows replaces them. Here they
// only update the history.
// Errors:
//   - DataLoss: the snapshot is not valid for this job.
//   - Others: those of Journal::Replay.
absl::StatusOr<Recovered> Recover(const policy::JobSpec& spec, journal::Journal& journal);

// Serializes a snapshot for the journal.
std::string SaveJob(const membership::Membership& machine, const reporting::JobHistory& history);

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_JOB_RECOVERY_H_
