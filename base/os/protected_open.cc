#include "base/os/protected_open.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::os {
namespace {

constexpr int kMostLinks = 40;  // as the kernel's

// With its last '/', so that a name can be appended; "" is the working directory.
std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string WithoutLastSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

absl::Status Failure(int error) {
  if (error == ENXIO) return absl::FailedPreconditionError("it is a pipe that nobody reads");
  if (error == ENOENT) return absl::NotFoundError(std::strerror(error));
  return absl::UnavailableError(std::strerror(error));
}

// The owner of the folder of `path`, if all users may write to it.
std::optional<uid_t> OwnerOfSharedFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  struct stat info = {};
  if (stat(folder.empty() ? "." : folder.c_str(), &info) != 0) return std::nullopt;
  return (info.st_mode & S_IWOTH) != 0 ? std::optional(info.st_uid) : std::nullopt;
}

// Checks a file with that metadata at `path`.
absl::Status Check(const struct stat& file, const std::string& path) {
  const std::optional<uid_t> owner = OwnerOfSharedFolder(path);
  if (!owner.has_value() || file.st_uid == geteuid() || file.st_uid == *owner) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat("it is a ",
                                                  S_ISLNK(file.st_mode)   ? "link"
                                                  : S_ISDIR(file.st_mode) ? "folder"
                                                                          : "file",
                                                  " of user ", file.st_uid,
                                                  ", in a folder that all users may write to"));
}

// Checks a file that is to be written. A second name may be the work of another user, who wants a
// certain file of this user to be written.
absl::Status CheckOnlyName(int fd, const std::string& path) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return Failure(errno);
  if (!S_ISREG(info.st_mode) || info.st_nlink < 2 || !OwnerOfSharedFolder(path).has_value()) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      "it has a second name, and is in a folder that all users may write to");
}

// A link that the kernel itself offers, such as /proc/self/fd/1. What it reads as may be no path.
bool IsKernels(const std::string& path) {
  struct statfs info = {};
  return statfs(FolderOf(path).c_str(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

// The place that the link `path` names; none if it is no link. Reads the link by a descriptor: it
// can't be exchanged between the check and the use.
absl::StatusOr<std::optional<std::string>> FollowLink(const std::string& path) {
  const Fd link(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!link.valid() || fstat(link.get(), &info) != 0) return Failure(errno);
  if (!S_ISLNK(info.st_mode)) return std::nullopt;
  RETURN_IF_ERROR(Check(info, path));
  char target[PATH_MAX];
  const ssize_t length = readlinkat(link.get(), "", target, sizeof(target));
  if (length < 0) return Failure(errno);
  const std::string text(target, length);
  return text[0] == '/' ? text : FolderOf(path) + text;
}

absl::Status DropContent(int file) {
  struct stat info = {};
  if (fstat(file, &info) != 0) return Failure(errno);
  if (S_ISREG(info.st_mode) && ftruncate(file, 0) != 0) return Failure(errno);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Fd> OpenProtected(const std::string& path, int flags, mode_t mode) {
  // A link with a slash behind it would be followed.
  std::string place = (flags & O_DIRECTORY) != 0 ? WithoutLastSlashes(path) : path;
  for (int links = 0; links < kMostLinks; ++links) {
    const int follow = IsKernels(place) ? 0 : O_NOFOLLOW;
    Fd file(open(place.c_str(), flags | follow | O_CLOEXEC, mode));
    if (file.valid()) {
      RETURN_IF_ERROR(CheckOwnerOf(file.get(), place));
      if ((flags & O_ACCMODE) != O_RDONLY) RETURN_IF_ERROR(CheckOnlyName(file.get(), place));
      return file;
    }
    const int error = errno;
    // The kernel's own refusal in a folder with the sticky bit.
    if (error == EACCES) RETURN_IF_ERROR(CheckOwner(place));
    // With O_DIRECTORY a link is no directory.
    if (error != ELOOP && error != ENOTDIR) return Failure(error);
    ASSIGN_OR_RETURN(const std::optional<std::string> target, FollowLink(place));
    if (!target.has_value()) return Failure(error);
    place = (flags & O_DIRECTORY) != 0 ? WithoutLastSlashes(*target) : *target;
  }
  return Failure(ELOOP);
}

absl::Status CheckOwner(const std::string& path) {
  const std::string own = WithoutLastSlashes(path);
  struct stat info = {};
  return lstat(own.c_str(), &info) == 0 ? Check(info, own) : absl::OkStatus();
}

absl::Status CheckOwnerOf(int fd, const std::string& path) {
  struct stat info = {};
  return fstat(fd, &info) == 0 ? Check(info, path) : Failure(errno);
}

absl::StatusOr<Fd> OpenOutputFile(const std::string& path, OldContent old, mode_t mode) {
  const int append = old == OldContent::kKept ? O_APPEND : 0;
  ASSIGN_OR_RETURN(Fd file, OpenProtected(path, O_WRONLY | O_CREAT | O_NONBLOCK | append, mode));
  if (old == OldContent::kDropped) RETURN_IF_ERROR(DropContent(file.get()));
  // F_SETFL sets all flags: later writes may block.
  if (fcntl(file.get(), F_SETFL, append) != 0) return Failure(errno);
  return file;
}

}  // namespace hvd::os
