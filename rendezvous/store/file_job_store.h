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
  // Locks the directory, which is made if it is missing. Only its owner can read what is in it.
  // Errors:
  //   - FailedPrecondition: another process has it.
  //   - InvalidArgument: it can't be used, is another user's or open to others, or something in it
  //     is; says why.
  //   - DataLoss: its job is damaged, or gone but for its journal; gives the remedy.
  //   - FailedPrecondition: its job has another format.
  static absl::StatusOr<std::unique_ptr<FileJobStore>> Open(const std::string& path);
  // The same of a folder that is open.
  static absl::StatusOr<std::unique_ptr<FileJobStore>> Open(
      std::unique_ptr<os::PrivateFolder> folder);

  const std::string& name() const override { return folder_->path(); }
  Terms terms() const override { return {"--state-dir", /*keeps_addresses=*/true}; }
  const std::optional<pb::journal::Job>& identity() const override { return job_; }
  absl::Status SaveIdentity(const pb::journal::Job& job) override;
  absl::StatusOr<OpenedJournal> OpenJournal(const std::string& job_id, const policy::JobSpec& spec,
                                            absl::Time now) override;
  // Never called: the kernel keeps the lock as long as this process lives.
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
