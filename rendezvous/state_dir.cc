#include "rendezvous/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd {
namespace {

constexpr uint32_t kFormat = 1;

absl::Status Unusable(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat("--state-dir: can't use ", path, ": ", strerror(errno)));
}

absl::StatusOr<std::string> ReadFile(const Fd& file, const std::string& path) {
  std::string contents;
  char buffer[4096];
  while (true) {
    const IoResult got = ReadSome(file.get(), buffer, sizeof(buffer));
    if (got.end) return contents;
    if (got.bytes == 0) return Unusable(path);
    contents.append(buffer, got.bytes);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateDir>> StateDir::Open(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Unusable(path);
  Fd lock(open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return Unusable(path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Unusable(path);
    return absl::FailedPreconditionError(
        absl::StrCat("--state-dir: another horovod-rendezvousd uses ", path));
  }
  std::unique_ptr<StateDir> dir(new StateDir(path, std::move(lock)));
  RETURN_IF_ERROR(dir->Load());
  return dir;
}

absl::Status StateDir::Load() {
  const Fd file(open(job_path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return absl::OkStatus();
  if (!file.valid()) return Unusable(job_path());
  ASSIGN_OR_RETURN(const std::string contents, ReadFile(file, job_path()));
  pb::journal::Job job;
  if (!job.ParseFromString(contents) || job.job_id().empty()) {
    return absl::DataLossError(absl::StrCat(job_path(), " is damaged"));
  }
  if (job.format() != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(job_path(), " has format ", job.format(),
                                                      "; this version understands ", kFormat));
  }
  job_ = std::move(job);
  return absl::OkStatus();
}

absl::Status StateDir::Save(const pb::journal::Job& job) {
  pb::journal::Job saved = job;
  saved.set_format(kFormat);
  const std::string draft = job_path() + ".new";
  const Fd file(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const Fd directory(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.valid() || !directory.valid() ||
      !WriteAll(file.get(), saved.SerializeAsString()).ok() || fsync(file.get()) != 0 ||
      rename(draft.c_str(), job_path().c_str()) != 0 || fsync(directory.get()) != 0) {
    return absl::InternalError(absl::StrCat("can't write ", job_path(), ": ", strerror(errno)));
  }
  job_ = std::move(saved);
  return absl::OkStatus();
}

}  // namespace hvd
