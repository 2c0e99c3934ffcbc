// The identity of the daemon's job: new, or loaded from its store.
#ifndef RENDEZVOUS_DAEMON_PERSISTENT_JOB_H_
#define RENDEZVOUS_DAEMON_PERSISTENT_JOB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/journal.pb.h"
#include "rendezvous/policy/job_spec.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::daemon {

// Identity, secrets and addresses of a job. A plain value.
struct PersistentJob {
  std::string job_id;
  security::PeerCredentials daemon;  // those of this process
  security::PeerCredentials hosts;   // those of all agents and workers
  std::string secret_key;
  std::vector<std::string> listen;  // with the ports of the previous daemon, if there was one
};

// Creates a new job.
// Errors:
//   - Internal: OpenSSL failed.
absl::StatusOr<PersistentJob> NewJob(const std::vector<std::string>& listen);

// Loads the store's job, or creates a new one and stores it.
// Errors:
//   - FailedPrecondition: the stored job differs from `spec` or `listen`.
//   - Internal: OpenSSL failed, or the store can't be written.
absl::StatusOr<PersistentJob> OpenPersistentJob(store::JobStore& store, const policy::JobSpec& spec,
                                                const std::vector<std::string>& listen);

// Stores the addresses at which the job is served, so that the next daemon listens there too.
// Errors:
//   - Internal: the store can't be written.
absl::Status KeepAddresses(store::JobStore& store, const std::vector<std::string>& addresses);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_PERSISTENT_JOB_H_
