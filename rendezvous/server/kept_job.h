// A job of a RendezvousServer as its state directory keeps it.
#ifndef RENDEZVOUS_SERVER_KEPT_JOB_H_
#define RENDEZVOUS_SERVER_KEPT_JOB_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/server/server.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::server {

// What a job has besides its options. `journal` goes before `store`.
struct JobParts {
  std::string token;
  std::string secret_key;
  std::string worker_socket;               // of an earlier process; empty: none
  std::unique_ptr<store::JobStore> store;  // null, as the next: it ends with this process
  std::unique_ptr<journal::Journal> journal;
};

// New secrets; nothing is kept.
JobParts NewJobParts();

// The job in the store, or a new one, which is stored before this returns.
// Errors: those of RendezvousServer::AddJob.
absl::StatusOr<JobParts> OpenJobParts(std::unique_ptr<store::JobStore> store,
                                      const ServedJobOptions& options, absl::Time now);

// Stores that the job has begun, and where its workers get their credentials. REQUIRES: it has a
// store.
// Errors:
//   - Internal: it can't be written.
absl::Status SaveAsBegun(const JobParts& parts, const std::string& worker_socket,
                         const std::vector<std::string>& addresses);

// What the store holds, with a problem if it can't be read.
KeptJob Describe(store::JobStore& store, absl::Time now);

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_KEPT_JOB_H_
