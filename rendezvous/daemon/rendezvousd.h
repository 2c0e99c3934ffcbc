// The main function of the daemon, from its options to the job's exit code.
#ifndef RENDEZVOUS_DAEMON_RENDEZVOUSD_H_
#define RENDEZVOUS_DAEMON_RENDEZVOUSD_H_

#include "absl/status/statusor.h"
#include "rendezvous/daemon/rendezvousd_options.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::daemon {

// Serves one job: prints its addresses to stdout, reports events on stderr, waits for the verdict,
// prints the summary and returns the exit code of the job. Returns at once with the exit code of a
// job that the store says has ended. SIGINT and SIGTERM end the job; with a store, SIGTERM leaves
// it to the next daemon instead. A signal during the wait for the store terminates the process.
// REQUIRES: the process has one thread.
// Errors:
//   - InvalidArgument, AlreadyExists, FailedPrecondition, DataLoss: the options are not valid, or
//     do not match the contents of the store.
//   - Unavailable: an address can't be listened on.
//   - Internal: the journal can't be written; the job can be resumed.
//   - Aborted: another daemon leads the job, or may lead it.
absl::StatusOr<int> RunRendezvousd(const RendezvousdOptions& options,
                                   const store::JobStoreOpener& open_store);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_RENDEZVOUSD_H_
