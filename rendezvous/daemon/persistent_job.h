// The daemon's job: a new one, or the one in its store.
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
  security::PeerCredentials daemon;  // this process's
  security::PeerCredentials hosts;   // every agent's and worker's
  std::string secret_key;
  std::vector<std::string> listen;  // with the previous ports, if there were any
};

// A new job.
// Errors:
//   - Internal: OpenSSL failed.
absl::StatusOr<PersistentJob> NewJob(const std::vector<std::string>& listen);

// The store's job, or a new one, which is stored before this returns.
// Errors:
//   - FailedPrecondition: the job there differs from what `spec` and `listen` ask for.
//   - Internal: OpenSSL failed, or nothing can be written there.
absl::StatusOr<PersistentJob> OpenPersistentJob(store::JobStore& store, const policy::JobSpec& spec,
                                                const std::vector<std::string>& listen);

// Stores the addresses at which the job is served, so that it will be served there again.
// Errors:
//   - Internal: nothing can be written there.
absl::Status KeepAddresses(store::JobStore& store, const std::vector<std::string>& addresses);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_PERSISTENT_JOB_H_
