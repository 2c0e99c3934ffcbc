#include "launcher/job_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"

namespace hvd {
namespace {

constexpr char kEnding[] = ".job";

// In /tmp anybody can make a directory of our name.
absl::Status CheckOwn(const std::string& directory) {
  struct stat info {};
  if (lstat(directory.c_str(), &info) != 0) {
    return absl::InternalError(absl::StrCat(directory, ": ", std::strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is not a directory that only you can use"));
  }
  return absl::OkStatus();
}

absl::Status WriteError(const std::string& path) {
  return absl::InternalError(absl::StrCat("can't write ", path, ": ", std::strerror(errno)));
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[16 << 10];
  while (true) {
    const IoResult got = ReadSome(fd, buffer, sizeof(buffer));
    text.append(buffer, got.bytes);
    if (got.end) return text;
  }
}

}  // namespace

std::string JobFileDirectory(const Environment& environment) {
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  if (runtime != environment.end() && absl::StartsWith(runtime->second, "/")) {
    return absl::StrCat(runtime->second, "/horovod");
  }
  return absl::StrCat("/tmp/horovod-", geteuid());
}

absl::StatusOr<std::unique_ptr<JobFile>> JobFile::Write(const std::string& directory,
                                                        const pb::JobFile& job) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return WriteError(directory);
  RETURN_IF_ERROR(CheckOwn(directory));
  const std::string path = absl::StrCat(directory, "/", job.job_id(), kEnding);
  const std::string unfinished = path + ".new";
  Fd file(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return WriteError(unfinished);
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  // Under its name only once it is whole and locked: a reader would take it for a dead job's.
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0 && WriteAll(file.get(), text).ok() &&
      rename(unfinished.c_str(), path.c_str()) == 0) {
    return absl::WrapUnique(new JobFile(path, std::move(file)));
  }
  const absl::Status status = WriteError(path);
  unlink(unfinished.c_str());
  return status;
}

JobFile::~JobFile() { unlink(path_.c_str()); }

absl::StatusOr<std::vector<pb::JobFile>> RunningJobs(const std::string& directory) {
  std::vector<pb::JobFile> jobs;
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) return jobs;
  RETURN_IF_ERROR(CheckOwn(directory));
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, kEnding)) continue;
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.valid()) continue;  // it has ended just now
    if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
      unlink(path.c_str());
      continue;
    }
    pb::JobFile job;
    if (google::protobuf::TextFormat::ParseFromString(ReadAll(file.get()), &job)) {
      jobs.push_back(std::move(job));
    }
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const pb::JobFile& a, const pb::JobFile& b) { return a.job_id() < b.job_id(); });
  return jobs;
}

}  // namespace hvd
