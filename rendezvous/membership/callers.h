// The callers of a job's daemon: whether a process may act for a worker.
#ifndef RENDEZVOUS_MEMBERSHIP_CALLERS_H_
#define RENDEZVOUS_MEMBERSHIP_CALLERS_H_

#include "absl/status/status.h"
#include "base/ids.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/parts.h"
#include "rendezvous/membership/workers.h"

namespace hvd::rendezvous::membership {

// The answer to a call that comes after the verdict.
absl::Status OverError(const Verdict& verdict);

// Checks that this process may act for this worker: the worker exists and is not gone, and no newer
// process has replaced this one. `worker` is null if it is unknown.
// Errors:
//   - NotFound: there is no such worker, or not any more.
//   - FailedPrecondition: it has exited, its process was replaced, or the job is over.
absl::Status CheckSpeaker(const Parts& parts, const WorkerKey& key, const Worker* worker);

// Checks that this process is a member of the given epoch's world, and that the epoch is the
// current one.
// Errors:
//   - FailedPrecondition: it is not.
absl::Status CheckMember(const Parts& parts, const WorkerKey& key, const Worker& worker,
                         Epoch wanted);

// Whether the worker was in the job's last world. Its progress report is accepted then although the
// world or the job is over: the commit was made before, and only its checkpoint is written now.
bool WasLast(const Parts& parts, const ProgressReported& event, const Worker& worker);

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_CALLERS_H_
