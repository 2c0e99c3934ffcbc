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

// Provides mutual exclusion: while the store lives, either no other daemon has the job, or OnLost
// reports that one may have it. Not thread-safe.
class JobStore {
 public:
  struct OpenedJournal {
    std::unique_ptr<journal::Journal> journal;  // must be destroyed before the store
    std::string warning;                        // one line for the user, or empty
  };

  virtual ~JobStore() = default;

  // The store's name in messages: "/var/lib/job".
  virtual const std::string& name() const = 0;

  struct Terms {
    const char* option;    // the daemon's option that selects the store: "--state-dir"
    bool keeps_addresses;  // true: all daemons of the job use the same addresses
  };
  virtual Terms terms() const = 0;

  // The job's identity, including its secrets, as last saved; nullopt: the store has no job.
  virtual const std::optional<pb::journal::Job>& identity() const = 0;

  // Replaces the identity atomically: after a crash, the store has the old or the new one.
  // Errors:
  //   - Internal: the identity can't be written; says why.
  virtual absl::Status SaveIdentity(const pb::journal::Job& job) = 0;

  // Opens the journal of this job. If there is none, creates it with the start time `now`, unless
  // the identity has addresses: these are saved after the journal was created, so a missing journal
  // is an error then. Call once.
  // Errors:
  //   - InvalidArgument: the journal can't be opened; says why.
  //   - FailedPrecondition: the journal belongs to another job, or was written by another version.
  //   - DataLoss: the journal is damaged or missing; says where, and gives the remedy.
  //   - Internal: the journal can't be written.
  virtual absl::StatusOr<OpenedJournal> OpenJournal(const std::string& job_id,
                                                    const policy::JobSpec& spec,
                                                    absl::Time now) = 0;

  // Sets the callback for the loss of the job: another daemon may have it, so this one must make no
  // further decisions. It is called at most once, from any thread, and not after the store was
  // destroyed. Call OnLost once.
  virtual void OnLost(std::function<void(const absl::Status& why)> callback) = 0;
};

// The callbacks of a wait for a store that another daemon uses.
struct StoreWait {
  // Prints a line for the user; thread-safe, does not block.
  std::function<void(const std::string& line)> say;
  std::function<bool()> gives_up;  // polled: returns true to stop waiting
};

// Opens the store that the options select, or returns null if they select none. The store may call
// StoreWait::say as long as it lives.
// Errors:
//   - Cancelled: StoreWait::gives_up returned true.
using JobStoreOpener = std::function<absl::StatusOr<std::unique_ptr<JobStore>>(const StoreWait&)>;

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_JOB_STORE_H_
