#include "rendezvous/store/file_job_store.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rendezvous/journal/file_journal.h"
#include "rendezvous/journal/record_file.h"
#include "rendezvous/store/folder_lock.h"
#include "rendezvous/store/record_files.h"

namespace hvd::rendezvous::store {
namespace {

constexpr uint32_t kFormat = 2;
// The first bytes of a file of format 1, which had no checksum.
constexpr absl::string_view kUncheckedFile = "\x08\x01";

constexpr char kJob[] = "job.pb";

absl::Status Lost(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(path, " ", what,
                   "; put back a copy of it, or start the job anew with another folder: "
                   "training goes on from its checkpoint"));
}

absl::Status OtherFormat(const std::string& path, uint32_t format) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has format ", format, "; this version understands ", kFormat));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileJobStore>> FileJobStore::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<os::PrivateFolder> folder, os::PrivateFolder::Open(path));
  return Open(std::move(folder));
}

absl::StatusOr<std::unique_ptr<FileJobStore>> FileJobStore::Open(
    std::unique_ptr<os::PrivateFolder> folder) {
  // Before Load, so that no other daemon changes the files between the reading and the first write.
  ASSIGN_OR_RETURN(Fd lock, LockFolder(*folder));
  std::unique_ptr<FileJobStore> dir(new FileJobStore(std::move(folder), std::move(lock)));
  RETURN_IF_ERROR(dir->Load());
  return dir;
}

absl::Status FileJobStore::Load() {
  const absl::StatusOr<std::string> contents = ReadFile(*folder_, kJob);
  if (absl::IsNotFound(contents.status())) {  // the identity is written before the journal
    ASSIGN_OR_RETURN(const bool was_begun, journal::FileJournal::IsIn(*folder_));
    if (!was_begun) return absl::OkStatus();
    return Lost(job_path(), "is missing, but the journal of its job is there");
  }
  RETURN_IF_ERROR(contents.status());
  const auto record = journal::FirstRecord(*contents);
  const bool whole = record.ok() && record->has_value();
  // Only if the record is not valid: the length of a valid one may begin with the same bytes.
  if (!whole && absl::StartsWith(*contents, kUncheckedFile)) return OtherFormat(job_path(), 1);
  pb::journal::Job job;
  if (!whole || !job.ParseFromArray((*record)->data(), static_cast<int>((*record)->size())) ||
      job.job_id().empty()) {
    return Lost(job_path(), "is damaged");
  }
  if (job.format() != kFormat) return OtherFormat(job_path(), job.format());
  job_ = std::move(job);
  return absl::OkStatus();
}

absl::Status FileJobStore::SaveIdentity(const pb::journal::Job& job) {
  pb::journal::Job saved = job;
  saved.set_format(kFormat);
  RETURN_IF_ERROR(ReplaceRecord(*folder_, kJob, saved.SerializeAsString()));
  // After the write, so that identity() never says more than the file.
  job_ = std::move(saved);
  return absl::OkStatus();
}

absl::StatusOr<JobStore::OpenedJournal> FileJobStore::OpenJournal(const std::string& job_id,
                                                                  const policy::JobSpec& spec,
                                                                  absl::Time now) {
  // A daemon that was killed during its first start may have left an identity without a journal.
  // Once the identity has addresses, the journal had been written and agents may have attached, so
  // a missing one is a loss.
  if (job_.has_value() && job_->addresses_size() > 0) {
    ASSIGN_OR_RETURN(const bool is_there, journal::FileJournal::IsIn(*folder_));
    if (!is_there) {
      return Lost(folder_->PathOf("journal"), "is missing or empty, but its job was under way");
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<journal::FileJournal> journal,
                   journal::FileJournal::Open(*folder_, job_id, spec, now));
  OpenedJournal opened;
  if (journal->bytes_cut() > 0) {
    opened.warning =
        absl::StrCat(folder_->PathOf("journal"), ": the last write was not complete; cut off ",
                     journal->bytes_cut(), " bytes");
  }
  opened.journal = std::move(journal);
  return opened;
}

}  // namespace hvd::rendezvous::store
