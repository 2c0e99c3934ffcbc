#include "launcher/job/job_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

namespace hvd::launcher::job {
namespace {

namespace fs = std::filesystem;

bool IsNumber(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

bool IsOwn(const fs::path& process) {
  struct stat info {};
  return stat(process.c_str(), &info) == 0 && info.st_uid == geteuid();
}

// A setuid program runs as its owner, with files that the user who started it had opened.
bool IsOwn(const Fd& file) {
  struct stat info {};
  return fstat(file.get(), &info) == 0 && info.st_uid == geteuid();
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

// Adds the jobs whose files (memfds whose link in /proc is `link`) are open in `process`, a folder
// of /proc. The process may end at any time, so all errors are ignored.
void ReadJobsOf(const fs::path& process, const std::string& link,
                std::map<std::string, pb::JobFile>* jobs) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone).string() != link) continue;
    const Fd file(open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid() || !IsOwn(file)) continue;
    pb::JobFile job;
    if (google::protobuf::TextFormat::ParseFromString(ReadAll(file.get()), &job)) {
      (*jobs)[job.job_id()] = std::move(job);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobFile>> JobFile::Write(const std::string& realm,
                                                        const pb::JobFile& job) {
  Fd file(memfd_create(realm.c_str(), MFD_CLOEXEC));
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  if (!file.valid() || fchmod(file.get(), 0600) != 0 || !WriteAll(file.get(), text).ok()) {
    return absl::InternalError(
        absl::StrCat("can't write the file that names the job's address: ", std::strerror(errno)));
  }
  return absl::WrapUnique(new JobFile(std::move(file)));
}

std::vector<pb::JobFile> RunningJobs(const std::string& realm) {
  const std::string link = absl::StrCat("/memfd:", realm, " (deleted)");
  // By id, because one file may be found twice: a forked child also has it until exec.
  std::map<std::string, pb::JobFile> jobs;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsNumber(entry->path().filename().string()) || !IsOwn(entry->path())) continue;
    ReadJobsOf(entry->path(), link, &jobs);
  }
  std::vector<pb::JobFile> result;
  for (auto& [id, job] : jobs) result.push_back(std::move(job));
  return result;
}

}  // namespace hvd::launcher::job
