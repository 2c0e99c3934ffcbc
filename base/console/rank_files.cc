#include "base/console/rank_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/console/output_format.h"
#include "base/os/protected_open.h"
#include "base/status_macros.h"

namespace hvd::console {
namespace {

absl::Status FileError(const std::string& path, const std::string& why) {
  return absl::InternalError(absl::StrCat("--output-filename: can't write ", path, ": ", why));
}

std::string RotatedPath(const std::string& path, int age) { return absl::StrCat(path, ".", age); }

void RemoveRotated(const std::string& path) {
  std::error_code error;
  for (int age = 1; std::filesystem::remove(RotatedPath(path, age), error); ++age) continue;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankFiles>> RankFiles::Create(const std::string& directory,
                                                             int num_proc, Ranks ranks,
                                                             Rotation rotation) {
  if (directory.empty()) return nullptr;
  auto files = absl::WrapUnique(new RankFiles(directory, num_proc, ranks, rotation));
  const absl::Status owner = os::CheckOwner(directory);
  if (!owner.ok()) return FileError(directory, std::string(owner.message()));
  RETURN_IF_ERROR(files->Lock());
  // All at once, so that a directory that can't be used ends the command before the job starts.
  for (int rank = 0; rank < num_proc; ++rank) RETURN_IF_ERROR(files->OpenRank(rank));
  return files;
}

// Two jobs would empty and mix each other's files. A file system without locks has no such check.
absl::Status RankFiles::Lock() {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return FileError(directory_, error.message());
  lock_.reset(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.valid() || flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--output-filename: another running job writes to ", directory_,
                   "; give each job a folder of its own"));
}

absl::Status RankFiles::OpenRank(int rank) {
  const std::string path = absl::StrCat(directory_, "/", RankDirectory(rank, num_proc_));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FileError(path, error.message());
  // Another user could redirect the output by a link, or by links in a folder of his own.
  const absl::Status owner = os::CheckOwner(path);
  if (!owner.ok()) return FileError(path, std::string(owner.message()));
  if (rotation_.bytes > 0) {
    RemoveRotated(path + "/stdout");
    RemoveRotated(path + "/stderr");
  }
  std::array<File, 2> files;
  RETURN_IF_ERROR(Open(path + "/stdout", &files[0]));
  RETURN_IF_ERROR(Open(path + "/stderr", &files[1]));
  files_[rank] = std::move(files);
  return absl::OkStatus();
}

absl::Status RankFiles::Open(const std::string& path, File* file) {
  file->path = path;
  file->bytes = 0;
  // O_NOFOLLOW: a link at this place could redirect the output to another file. O_NONBLOCK: opening
  // a FIFO would wait for a reader.
  file->fd.reset(
      open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  struct stat info = {};
  if (!file->fd.valid() || fstat(file->fd.get(), &info) != 0) {
    return FileError(path, errno == ELOOP ? "it is a link" : std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return FileError(path, "it is not a regular file");
  const absl::Status owner = os::CheckOwnerOf(file->fd.get(), path);
  if (!owner.ok()) return FileError(path, std::string(owner.message()));
  if (ftruncate(file->fd.get(), 0) != 0) return FileError(path, std::strerror(errno));
  return absl::OkStatus();
}

// Renames the files from the oldest to the newest, so that each new name is free or that of the
// file to be dropped.
absl::Status RankFiles::Rotate(File* file) {
  std::error_code error;
  for (int age = rotation_.kept; age > 0; --age) {
    const std::string from = age == 1 ? file->path : RotatedPath(file->path, age - 1);
    std::filesystem::rename(from, RotatedPath(file->path, age), error);
    const bool is_missing = error == std::errc::no_such_file_or_directory;
    if (error && !is_missing) return FileError(RotatedPath(file->path, age), error.message());
  }
  return Open(std::string(file->path), file);
}

absl::Status RankFiles::Write(int rank, bool is_stderr, absl::string_view data) {
  if (files_.count(rank) == 0) {
    if (rank < 0 || ranks_ == Ranks::kFixed) {
      return absl::InternalError(absl::StrCat("--output-filename: there is no rank ", rank));
    }
    RETURN_IF_ERROR(OpenRank(rank));
  }
  File& file = files_[rank][is_stderr ? 1 : 0];
  const int64_t bytes = static_cast<int64_t>(data.size());
  // An empty file takes any line: before one that is longer than the limit nothing is gained by a
  // rotation.
  if (rotation_.bytes > 0 && file.bytes > 0 && file.bytes + bytes > rotation_.bytes) {
    RETURN_IF_ERROR(Rotate(&file));
  }
  file.bytes += bytes;
  while (!data.empty()) {
    const ssize_t written = write(file.fd.get(), data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(file.path, std::strerror(errno));
    data.remove_prefix(written);
  }
  return absl::OkStatus();
}

}  // namespace hvd::console
