#include "launcher/console/rank_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "launcher/console/output_format.h"

namespace hvd {
namespace {

// Two files a rank may be more than the usual soft limit of 1024.
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::Status FileError(const std::string& path, const std::string& why) {
  return absl::InternalError(absl::StrCat("--output-filename: can't write ", path, ": ", why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankFiles>> RankFiles::Create(const std::string& directory,
                                                             int num_proc) {
  if (directory.empty()) return nullptr;
  if (num_proc > 256) AllowManyFiles();
  auto files = absl::WrapUnique(new RankFiles);
  for (int rank = 0; rank < num_proc; ++rank) {
    const std::string path = absl::StrCat(directory, "/", RankDirectory(rank, num_proc));
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return FileError(path, error.message());
    RETURN_IF_ERROR(files->Open(path + "/stdout"));
    RETURN_IF_ERROR(files->Open(path + "/stderr"));
  }
  return files;
}

RankFiles::~RankFiles() {
  for (const File& file : files_) close(file.fd);
}

absl::Status RankFiles::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return FileError(path, std::strerror(errno));
  files_.push_back({path, fd});
  return absl::OkStatus();
}

absl::Status RankFiles::Write(int rank, bool is_stderr, absl::string_view data) {
  const size_t index = static_cast<size_t>(rank) * 2 + (is_stderr ? 1 : 0);
  if (rank < 0 || index >= files_.size()) {
    return absl::InternalError(absl::StrCat("--output-filename: there is no rank ", rank));
  }
  while (!data.empty()) {
    const ssize_t written = write(files_[index].fd, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(files_[index].path, std::strerror(errno));
    data.remove_prefix(written);
  }
  return absl::OkStatus();
}

}  // namespace hvd
