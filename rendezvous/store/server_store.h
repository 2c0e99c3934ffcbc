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

// Holds the directory's lock while it lives. Not thread-safe. Job stores may outlive it.
class ServerStore {
 public:
  // Locks the directory, which is made if it is missing. Only its owner can read what is in it.
  // Errors:
  //   - FailedPrecondition: another process has it, it is a horovod-rendezvousd's, or its server
  //     has another format.
  //   - InvalidArgument: it can't be used, is another user's or open to others, or something in it
  //     is; says why.
  //   - DataLoss: its server's identity is damaged, or gone while jobs are there; gives the remedy.
  static absl::StatusOr<std::unique_ptr<ServerStore>> Open(const std::string& path);

  const std::string& name() const { return folder_->path(); }

  // The identity of the server, with its secrets, as last saved; nullopt: none was.
  const std::optional<pb::journal::Server>& identity() const { return identity_; }

  // After a crash there is the old or the new one, whole.
  // Errors:
  //   - InvalidArgument, Internal: it can't be written; says why.
  absl::Status SaveIdentity(const pb::journal::Server& server);

  // The store of the job of this id, made if there is none.
  // Errors: those of FileJobStore::Open. FailedPrecondition: it is open already.
  absl::StatusOr<std::unique_ptr<JobStore>> OpenJob(const std::string& job_id);

  // Whether anything of a job of this id is kept here.
  bool HasJob(const std::string& job_id) const;

  // One for each job that is kept here and whose store is not open.
  std::vector<absl::StatusOr<std::unique_ptr<JobStore>>> OpenOtherJobs();

  // Removes the job and all that is known of it. Harmless if there is none. REQUIRES: its store is
  // not open.
  // Errors:
  //   - Internal: it is still there; says why.
  absl::Status RemoveJob(const std::string& job_id);

 private:
  ServerStore(std::unique_ptr<os::PrivateFolder> folder, Fd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  absl::Status Load();
  absl::Status Lost(absl::string_view what) const;
  // The job store in the folder of this name. DataLoss: it is not where it belongs.
  absl::StatusOr<std::unique_ptr<JobStore>> OpenFound(const std::string& name) const;
  std::vector<std::string> FoldersBeginningWith(const std::string& prefix) const;
  void FinishRemovals();

  const std::unique_ptr<os::PrivateFolder> folder_;
  const Fd lock_;
  std::optional<pb::journal::Server> identity_;
};

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_SERVER_STORE_H_
