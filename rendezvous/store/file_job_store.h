// A job store in a directory: DIR/job.pb (identity and secrets), DIR/journal (events), DIR/lock.
#ifndef RENDEZVOUS_STORE_FILE_JOB_STORE_H_
#define RENDEZVOUS_STORE_FILE_JOB_STORE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "base/os/private_folder.h"
#include "proto/journal.pb.h"
#include "rendezvous/policy/job_spec.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::store {

// Holds the directory's lock while it lives.
class FileJobStore final : public JobStore {
 public:
  // Opens and locks the directory; creates it if it is missing. Its contents are readable by its
  // owner only.
  // Errors:
  //   - FailedPrecondition: another process holds the lock, or the job has another format.
  //   - InvalidArgument: the directory or a file in it can't be opened, belongs to another user or
  //     is accessible to others; says which.
  //   - DataLoss: the job's identity is damaged, or missing while there is a journal; gives the
  //     remedy.
  static absl::StatusOr<std::unique_ptr<FileJobStore>> Open(const std::string& path);
  // The same, for a folder that is open already.
  static absl::StatusOr<std::unique_ptr<FileJobStore>> Open(
      std::unique_ptr<os::PrivateFolder> folder);

  const std::string& name() const override { return folder_->path(); }
  Terms terms() const override { return {"--state-dir", /*keeps_addresses=*/true}; }
  const std::optional<pb::journal::Job>& identity() const override { return job_; }
  absl::Status SaveIdentity(const pb::journal::Job& job) override;
  absl::StatusOr<OpenedJournal> OpenJournal(const std::string& job_id, const policy::JobSpec& spec,
                                            absl::Time now) override;
  // Never calls it: the lock lasts as long as this process.
  void OnLost(std::function<void(const absl::Status& why)>) override {}

 private:
  FileJobStore(std::unique_ptr<os::PrivateFolder> folder, Fd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  std::string job_path() const { return folder_->PathOf("job.pb"); }
  absl::Status Load();

  const std::unique_ptr<os::PrivateFolder> folder_;
  const Fd lock_;
  std::optional<pb::journal::Job> job_;
};

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_FILE_JOB_STORE_H_
