#include "rendezvous/store/server_store.h"

#include <fcntl.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "rendezvous/journal/record_file.h"
#include "rendezvous/store/file_job_store.h"
#include "rendezvous/store/folder_lock.h"
#include "rendezvous/store/record_files.h"

namespace hvd::rendezvous::store {
namespace {

constexpr uint32_t kFormat = 1;
constexpr char kIdentity[] = "server.pb";
constexpr char kJob[] = "job.pb";
constexpr char kJobFolder[] = "job-";
constexpr char kRemovedFolder[] = "removed-";
constexpr size_t kNameBytes = 16;

// Hashed, since an id may contain characters that a file name can't.
std::string FolderOf(const std::string& job_id) {
  const std::string hash = Sha256(job_id);
  return absl::StrCat(kJobFolder,
                      absl::BytesToHexString(absl::string_view(hash).substr(0, kNameBytes)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerStore>> ServerStore::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<os::PrivateFolder> folder, os::PrivateFolder::Open(path));
  ASSIGN_OR_RETURN(Fd lock, LockFolder(*folder));
  std::unique_ptr<ServerStore> store(new ServerStore(std::move(folder), std::move(lock)));
  RETURN_IF_ERROR(store->Load());
  // After Load, which may find that this folder is not a server's.
  store->FinishRemovals();
  return store;
}

absl::Status ServerStore::Load() {
  if (folder_->OpenFile(kJob, O_RDONLY).ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name(), " holds the job of a horovod-rendezvousd; give the server a separate folder"));
  }
  const absl::StatusOr<std::string> contents = ReadFile(*folder_, kIdentity);
  if (absl::IsNotFound(contents.status())) {  // the identity is written before the first job
    return FoldersBeginningWith(kJobFolder).empty() ? absl::OkStatus() : Lost("is missing");
  }
  RETURN_IF_ERROR(contents.status());
  const auto record = journal::FirstRecord(*contents);
  pb::journal::Server server;
  if (!record.ok() || !record->has_value() ||
      !server.ParseFromArray((*record)->data(), static_cast<int>((*record)->size()))) {
    return Lost("is damaged");
  }
  if (server.format() != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(folder_->PathOf(kIdentity), " has format ",
                                                      server.format(),
                                                      "; this version understands ", kFormat));
  }
  identity_ = std::move(server);
  return absl::OkStatus();
}

absl::Status ServerStore::Lost(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(
      folder_->PathOf(kIdentity), " ", what,
      "; put back a copy of it, or give another folder: jobs then begin anew, from their "
      "checkpoints"));
}

absl::Status ServerStore::SaveIdentity(const pb::journal::Server& server) {
  pb::journal::Server saved = server;
  saved.set_format(kFormat);
  RETURN_IF_ERROR(ReplaceRecord(*folder_, kIdentity, saved.SerializeAsString()));
  identity_ = std::move(saved);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<JobStore>> ServerStore::OpenJob(const std::string& job_id) {
  ASSIGN_OR_RETURN(auto folder, folder_->OpenFolder(FolderOf(job_id)));
  return FileJobStore::Open(std::move(folder));
}

std::vector<absl::StatusOr<std::unique_ptr<JobStore>>> ServerStore::OpenOtherJobs() {
  std::vector<absl::StatusOr<std::unique_ptr<JobStore>>> stores;
  for (const std::string& folder : FoldersBeginningWith(kJobFolder)) {
    auto store = OpenFound(folder);
    // The lock of a job's folder is this server's own: the job was added. Other processes are kept
    // out by the lock of the whole folder.
    if (IsLockedFolder(store.status())) continue;
    // AddJob was interrupted before it wrote the identity: no agent or worker knows this job.
    if (store.ok() && !(*store)->identity().has_value()) continue;
    stores.push_back(std::move(store));
  }
  return stores;
}

absl::StatusOr<std::unique_ptr<JobStore>> ServerStore::OpenFound(const std::string& name) const {
  ASSIGN_OR_RETURN(auto folder, folder_->OpenFolder(name));
  ASSIGN_OR_RETURN(std::unique_ptr<JobStore> store, FileJobStore::Open(std::move(folder)));
  if (!store->identity().has_value()) return store;
  const std::string own = FolderOf(store->identity()->job_id());
  if (own == name) return store;
  // A copied folder must not become a second job with the same secrets.
  return absl::DataLossError(absl::StrCat(store->name(), " holds the job ",
                                          store->identity()->job_id(), ", whose folder is ",
                                          folder_->PathOf(own), "; move it there, or away"));
}

bool ServerStore::HasJob(const std::string& job_id) const { return folder_->Has(FolderOf(job_id)); }

absl::Status ServerStore::RemoveJob(const std::string& job_id) {
  if (!HasJob(job_id)) return absl::OkStatus();
  const std::string folder = FolderOf(job_id);
  // Renamed first, so that a crash during the removal leaves no partial job behind.
  // The new name is random, since an earlier removal under the same id may not have finished.
  RETURN_IF_ERROR(folder_->Rename(
      folder, absl::StrCat(kRemovedFolder, absl::BytesToHexString(RandomBytes(kNameBytes)))));
  // Durable before the contents are deleted, or a crash could restore the name of a half-deleted
  // folder.
  RETURN_IF_ERROR(folder_->Sync());
  FinishRemovals();
  return absl::OkStatus();
}

std::vector<std::string> ServerStore::FoldersBeginningWith(const std::string& prefix) const {
  std::vector<std::string> found;
  for (std::string& name : folder_->Names()) {
    if (absl::StartsWith(name, prefix)) found.push_back(std::move(name));
  }
  return found;
}

void ServerStore::FinishRemovals() {
  // Folders that can't be removed only use space, and are tried again later.
  for (const std::string& folder : FoldersBeginningWith(kRemovedFolder)) {
    folder_->RemoveAll(folder);
  }
}

}  // namespace hvd::rendezvous::store
