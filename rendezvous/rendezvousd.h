// The daemon's life, from its options to the job's exit code.
#ifndef RENDEZVOUS_RENDEZVOUSD_H_
#define RENDEZVOUS_RENDEZVOUSD_H_

#include "absl/status/statusor.h"
#include "rendezvous/rendezvousd_options.h"

namespace hvd {

// Serves one job: prints the addresses to stdout, waits for the verdict, prints its summary to
// stderr and returns its exit code. SIGTERM and SIGINT end the job. REQUIRES: the process has one
// thread.
//   InvalidArgument, AlreadyExists: options that can't work.   Unavailable: an address can't be
//   listened on.
absl::StatusOr<int> RunRendezvousd(const RendezvousdOptions& options);

}  // namespace hvd

#endif  // RENDEZVOUS_RENDEZVOUSD_H_
