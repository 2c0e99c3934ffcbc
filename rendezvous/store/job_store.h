// The persistent store of a job, from which a restarted daemon resumes it: a directory, or a
// key-value store of the cluster.
#ifndef RENDEZVOUS_STORE_JOB_STORE_H_
#define RENDEZVOUS_STORE_JOB_STORE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/journal.pb.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::store {

// While the store lives, no other daemon has the job, or the store reports through OnLost that one
// has. Not thread-safe.
class JobStore {
 public:
  struct OpenedJournal {
    std::unique_ptr<journal::Journal> journal;  // must go before the store
    std::string warning;                        // one line for the user, or empty
  };

  virtual ~JobStore() = default;

  // The store's name in messages: "/var/lib/job".
  virtual const std::string& name() const = 0;

  struct Terms {
    const char* option;    // of the daemon, that chooses a store: "--state-dir"
    bool keeps_addresses;  // every daemon of the job has the same; else each its own
  };
  virtual Terms terms() const = 0;

  // The identity of the job, with its secrets, as last saved; nullopt: no job is kept here.
  virtual const std::optional<pb::journal::Job>& identity() const = 0;

  // Saves it. After a crash there is the old or the new one, whole.
  // Errors:
  //   - Internal: it can't be written; says why.
  virtual absl::Status SaveIdentity(const pb::journal::Job& job) = 0;

  // Opens the journal of this job, or begins it at the time `now` unless the identity has
  // addresses, which are saved only after that. Call once.
  // Errors:
  //   - InvalidArgument: it can't be opened; says why.
  //   - FailedPrecondition: it is another job's, or was written by another version.
  //   - DataLoss: it is damaged, or has gone; says where, and gives the remedy.
  //   - Internal: it can't be written.
  virtual absl::StatusOr<OpenedJournal> OpenJournal(const std::string& job_id,
                                                    const policy::JobSpec& spec,
                                                    absl::Time now) = 0;

  // `callback` is called at most once, from any thread, when another daemon may have the job: this
  // one must then leave it alone. Call once. After the store is destroyed, no call comes.
  virtual void OnLost(std::function<void(const absl::Status& why)> callback) = 0;
};

// What waits for a store to be free, such as another daemon's.
struct StoreWait {
  std::function<void(const std::string& line)> say;  // to the user; thread-safe, never blocks
  std::function<bool()> gives_up;                    // whether to stop waiting
};

// Opens the store that an option names; null: nothing is to be kept. Cancelled: it gave up. The
// store may say something as long as it lives.
using JobStoreOpener = std::function<absl::StatusOr<std::unique_ptr<JobStore>>(const StoreWait&)>;

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_JOB_STORE_H_
