// The persistent store of a rendezvous server, from which a restarted scheduler resumes its jobs:
// DIR/server.pb (identity and secrets), DIR/job-.../ (a job store for each job), DIR/lock.
#ifndef RENDEZVOUS_STORE_SERVER_STORE_H_
#define RENDEZVOUS_STORE_SERVER_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"
#include "base/os/private_folder.h"
#include "proto/journal.pb.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::store {

// Holds the directory's lock while it lives. Job stores from OpenJob may outlive it. Not
// thread-safe.
class ServerStore {
 public:
  // Opens and locks the directory; creates it if it is missing. Its contents are readable by its
  // owner only.
  // Errors:
  //   - FailedPrecondition: another process holds the lock, the directory belongs to a
  //     horovod-rendezvousd, or it has another format.
  //   - InvalidArgument: the directory or a file in it can't be opened, belongs to another user or
  //     is accessible to others; says which.
  //   - DataLoss: the server's identity is damaged, or missing while there are jobs; gives the
  //     remedy.
  static absl::StatusOr<std::unique_ptr<ServerStore>> Open(const std::string& path);

  const std::string& name() const { return folder_->path(); }

  // The server's identity, including its secrets, as last saved; nullopt: none was saved.
  const std::optional<pb::journal::Server>& identity() const { return identity_; }

  // Replaces the identity atomically: after a crash, there is the old or the new one.
  // Errors:
  //   - InvalidArgument, Internal: the identity can't be written; says why.
  absl::Status SaveIdentity(const pb::journal::Server& server);

  // Opens the store of this job; creates it if there is none.
  // Errors:
  //   - FailedPrecondition: the store is open already.
  //   - Others: those of FileJobStore::Open.
  absl::StatusOr<std::unique_ptr<JobStore>> OpenJob(const std::string& job_id);

  // Whether the directory has a job store for this id.
  bool HasJob(const std::string& job_id) const;

  // Opens the store of each job that is not open yet.
  std::vector<absl::StatusOr<std::unique_ptr<JobStore>>> OpenOtherJobs();

  // Removes the job's store. No effect if there is none. REQUIRES: the store is not open.
  // Errors:
  //   - Internal: the store can't be removed; says why.
  absl::Status RemoveJob(const std::string& job_id);

 private:
  ServerStore(std::unique_ptr<os::PrivateFolder> folder, Fd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  absl::Status Load();
  absl::Status Lost(absl::string_view what) const;
  // Opens the job store in the folder of this name.
  // Errors:
  //   - DataLoss: the job in it has another id than the folder.
  absl::StatusOr<std::unique_ptr<JobStore>> OpenFound(const std::string& name) const;
  std::vector<std::string> FoldersBeginningWith(const std::string& prefix) const;
  void FinishRemovals();

  const std::unique_ptr<os::PrivateFolder> folder_;
  const Fd lock_;
  std::optional<pb::journal::Server> identity_;
};

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_SERVER_STORE_H_
