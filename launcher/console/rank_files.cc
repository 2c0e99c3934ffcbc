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
                                                             int num_proc, Ranks ranks) {
  if (directory.empty()) return nullptr;
  if (num_proc > 256 || ranks == Ranks::kMayGrow) AllowManyFiles();
  auto files = absl::WrapUnique(new RankFiles(directory, num_proc, ranks));
  for (int rank = 0; rank < num_proc; ++rank) RETURN_IF_ERROR(files->OpenRank(rank));
  return files;
}

absl::Status RankFiles::OpenRank(int rank) {
  const std::string path = absl::StrCat(directory_, "/", RankDirectory(rank, num_proc_));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FileError(path, error.message());
  std::array<File, 2> files;
  RETURN_IF_ERROR(Open(path + "/stdout", &files[0]));
  RETURN_IF_ERROR(Open(path + "/stderr", &files[1]));
  files_[rank] = std::move(files);
  return absl::OkStatus();
}

absl::Status RankFiles::Open(const std::string& path, File* file) {
  file->path = path;
  file->fd.reset(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file->fd.valid() ? absl::OkStatus() : FileError(path, std::strerror(errno));
}

absl::Status RankFiles::Write(int rank, bool is_stderr, absl::string_view data) {
  if (files_.count(rank) == 0) {
    if (rank < 0 || ranks_ == Ranks::kFixed) {
      return absl::InternalError(absl::StrCat("--output-filename: there is no rank ", rank));
    }
    RETURN_IF_ERROR(OpenRank(rank));
  }
  const File& file = files_[rank][is_stderr ? 1 : 0];
  while (!data.empty()) {
    const ssize_t written = write(file.fd.get(), data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(file.path, std::strerror(errno));
    data.remove_prefix(written);
  }
  return absl::OkStatus();
}

}  // namespace hvd
