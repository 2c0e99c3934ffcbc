#include "base/os/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

absl::Status Unavailable(int error) { return absl::UnavailableError(std::strerror(error)); }

// Whether a file of `owner` in the folder of `path` may be another user's trap.
bool IsTrap(uid_t owner, const std::string& path) {
  const std::string folder = FolderOf(path);
  struct stat info = {};
  if (stat(folder.empty() ? "." : folder.c_str(), &info) != 0) return false;
  return (info.st_mode & S_IWOTH) != 0 && owner != geteuid() && owner != info.st_uid;
}

absl::Status Trap(absl::string_view what, uid_t owner) {
  return absl::PermissionDeniedError(absl::StrCat("it is ", what, " of user ", owner,
                                                  ", in a folder that all users may write to"));
}

// A link that the kernel itself offers, such as /proc/self/fd/1. What it reads as may be no path.
bool IsKernels(const std::string& path) {
  struct statfs info = {};
  return statfs(FolderOf(path).c_str(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

// The place that the link `path` names. Reads the link by a descriptor: it can't be exchanged
// between the check and the use.
absl::StatusOr<std::string> FollowLink(const std::string& path) {
  const Fd link(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!link.valid() || fstat(link.get(), &info) != 0) return Unavailable(errno);
  if (!S_ISLNK(info.st_mode)) return path;
  if (IsTrap(info.st_uid, path)) return Trap("a link", info.st_uid);
  char target[PATH_MAX];
  const ssize_t length = readlinkat(link.get(), "", target, sizeof(target));
  if (length < 0) return Unavailable(errno);
  const std::string text(target, length);
  return text[0] == '/' ? text : FolderOf(path) + text;
}

}  // namespace

absl::StatusOr<Fd> OpenOutputFile(const std::string& path, OldContent old, mode_t mode) {
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (old == OldContent::kKept ? O_APPEND : O_TRUNC);
  std::string place = path;
  for (int links = 0; links < kMostLinks; ++links) {
    Fd file(open(place.c_str(), flags | (IsKernels(place) ? 0 : O_NOFOLLOW), mode));
    // F_SETFL sets all flags: later writes may block.
    if (file.valid() && fcntl(file.get(), F_SETFL, flags & O_APPEND) == 0) return file;
    if (errno == ENXIO) {
      return absl::FailedPreconditionError("it is a pipe that nobody reads");
    }
    const int error = errno;
    // The kernel's own refusal in a folder with the sticky bit.
    if (error == EACCES) RETURN_IF_ERROR(CheckOwner(place));
    if (error != ELOOP) return Unavailable(error);
    ASSIGN_OR_RETURN(place, FollowLink(place));
  }
  return Unavailable(ELOOP);
}

absl::Status CheckOwner(const std::string& path) {
  const std::string own = WithoutLastSlashes(path);
  struct stat info = {};
  if (lstat(own.c_str(), &info) != 0 || !IsTrap(info.st_uid, own)) return absl::OkStatus();
  return Trap(S_ISLNK(info.st_mode) ? "a link" : "a file or folder", info.st_uid);
}

}  // namespace hvd::os
