// A job of a RendezvousServer as its state directory keeps it.
#ifndef RENDEZVOUS_STORE_KEPT_JOB_H_
#define RENDEZVOUS_STORE_KEPT_JOB_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/policy/job_spec.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::store {

// What must be the same when it is added again.
struct JobTerms {
  std::string id;
  policy::JobSpec spec;
  bool starts_workers = false;  // its scheduler does; else agents
};

// What a job has besides. `journal` goes before `store`.
struct JobParts {
  std::string token;
  std::string secret_key;
  std::string worker_socket;        // of an earlier process; empty: none
  std::unique_ptr<JobStore> store;  // null, as the next: it ends with this process
  std::unique_ptr<journal::Journal> journal;
};

// New secrets; nothing is kept.
JobParts NewJobParts();

// The job in the store, or a new one, which is stored before this returns.
// Errors:
//   - FailedPrecondition: that job has other terms.
//   - Others: those of JobStore.
absl::StatusOr<JobParts> OpenJobParts(std::unique_ptr<JobStore> store, const JobTerms& terms,
                                      absl::Time now);

// Stores that the job has begun, and where its workers get their credentials. REQUIRES: it has a
// store.
// Errors:
//   - Internal: it can't be written.
absl::Status SaveAsBegun(const JobParts& parts, const std::string& worker_socket,
                         const std::vector<std::string>& addresses);

// The terms of the job in the store. REQUIRES: there is one.
JobTerms TermsOf(const JobStore& store);

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_KEPT_JOB_H_
