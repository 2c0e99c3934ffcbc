// The stored form of a RendezvousServer's job in the state directory.
#ifndef RENDEZVOUS_STORE_JOB_PARTS_H_
#define RENDEZVOUS_STORE_JOB_PARTS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/policy/job_spec.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::store {

// The options that must be the same when a job is resumed.
struct JobTerms {
  std::string id;
  policy::JobSpec spec;
  bool starts_workers = false;  // true: the scheduler starts them; false: agents do
};

// The secrets and the storage of a job. `journal` is destroyed before `store`.
struct JobParts {
  std::string token;
  std::string secret_key;
  std::unique_ptr<JobStore> store;  // null, like `journal`: the job ends with this process
  std::unique_ptr<journal::Journal> journal;
};

// Creates new secrets for a job without a store.
JobParts NewJobParts();

// Loads the job in the store, or creates a new one and stores it.
// Errors:
//   - FailedPrecondition: the stored job has other terms.
//   - Others: those of JobStore.
absl::StatusOr<JobParts> OpenJobParts(std::unique_ptr<JobStore> store, const JobTerms& terms,
                                      absl::Time now);

// Stores the server's addresses, which marks the job as begun. REQUIRES: the job has a store.
// Errors:
//   - Internal: the store can't be written.
absl::Status SaveAsBegun(const JobParts& parts, const std::vector<std::string>& addresses);

// The terms of the job in the store. REQUIRES: the store has a job.
JobTerms TermsOf(const JobStore& store);

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_JOB_PARTS_H_
