// The main function of the daemon, from its options to the job's exit code.
#ifndef RENDEZVOUS_DAEMON_RENDEZVOUSD_H_
#define RENDEZVOUS_DAEMON_RENDEZVOUSD_H_

#include "absl/status/statusor.h"
#include "rendezvous/daemon/rendezvousd_options.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::daemon {

// Serves one job: prints the addresses to stdout, reports events on stderr, waits for the verdict,
// prints its summary and returns its exit code. A signal that comes while it waits for the store
// ends the process. The exit code of a job that ended earlier is returned at once. SIGINT and
// SIGTERM end the job; with a state directory SIGTERM leaves it to the next daemon instead.
// REQUIRES: the process has one thread. Errors:
//   - InvalidArgument, AlreadyExists, FailedPrecondition, DataLoss: the options can't work, or not
//     with what is in the state directory.
//   - Unavailable: an address can't be listened on.
//   - Internal: the journal can't be written any more; the job can be resumed.
//   - Aborted: another daemon has the job, or may have it.
absl::StatusOr<int> RunRendezvousd(const RendezvousdOptions& options,
                                   const store::JobStoreOpener& open_store);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_RENDEZVOUSD_H_
