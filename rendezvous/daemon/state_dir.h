// Where the daemon keeps its job, so that it can be started again: DIR/job.pb (identity and
// secrets), DIR/journal (what happened), DIR/lock.
#ifndef RENDEZVOUS_DAEMON_STATE_DIR_H_
#define RENDEZVOUS_DAEMON_STATE_DIR_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/os/private_folder.h"
#include "proto/journal.pb.h"

namespace hvd::rendezvous::daemon {

// Holds the directory's lock while it lives. Not thread-safe.
class StateDir {
 public:
  // Takes the directory, which is made if it is not there. All in it is its owner's alone.
  //   FailedPrecondition: another process has it.   InvalidArgument: it can't be used, is another
  //   user's or open to others, or something in it is; says why.
  //   DataLoss: its job can't be understood.
  static absl::StatusOr<std::unique_ptr<StateDir>> Open(const std::string& path);

  // The job that is kept here, if one is.
  const std::optional<pb::journal::Job>& job() const { return job_; }

  // Keeps it. After a crash there is the old or the new one, whole.
  //   Internal: it can't be written; says why.
  absl::Status Save(const pb::journal::Job& job);

  const std::string& path() const { return folder_->path(); }
  // The journal's place.
  const os::PrivateFolder& folder() const { return *folder_; }

 private:
  StateDir(std::unique_ptr<os::PrivateFolder> folder, Fd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  std::string job_path() const { return folder_->PathOf("job.pb"); }
  absl::Status Load();

  const std::unique_ptr<os::PrivateFolder> folder_;
  const Fd lock_;
  std::optional<pb::journal::Job> job_;
};

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_STATE_DIR_H_
