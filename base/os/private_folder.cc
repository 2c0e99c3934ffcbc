#include "base/os/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/os/protected_open.h"
#include "base/status_macros.h"

namespace hvd::os {
namespace {

absl::Status Unusable(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("can't use ", path, ": ", why));
}

// Checks that the file of `fd` belongs to this user and is accessible to its owner only. The check
// of the open descriptor, and not of the path, leaves no time for a replacement in between.
absl::Status CheckOurs(int fd, const std::string& path) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return Unusable(path, strerror(errno));
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
    return Unusable(path, "it is not a regular file");
  if (info.st_uid != geteuid()) {
    return Unusable(path, absl::StrFormat("it belongs to another user (uid %d)", info.st_uid));
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
  return Unusable(path, absl::StrFormat("it is open to other users (mode %04o); check its "
                                        "contents, then run chmod go= %s",
                                        info.st_mode & 07777, path));
}

// The names of a folder's entries, sorted.
std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  // A new open file, because readdir moves the file offset, which duplicates of `folder` would
  // share.
  DIR* const listed = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (listed == nullptr) return names;
  while (const dirent* const entry = readdir(listed)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(listed);
  std::sort(names.begin(), names.end());
  return names;
}

void RemoveAllIn(int parent, const std::string& name) {
  if (unlinkat(parent, name.c_str(), 0) == 0) return;
  {
    const Fd folder(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid()) return;
    for (const std::string& each : NamesIn(folder.get())) RemoveAllIn(folder.get(), each);
  }
  (void)unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateFolder>> PrivateFolder::Open(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Unusable(path, strerror(errno));
  absl::StatusOr<Fd> fd = OpenProtected(path, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return Unusable(path, fd.status().message());
  return Take(*std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<PrivateFolder>> PrivateFolder::OpenFolder(
    const std::string& name) const {
  const std::string path = PathOf(name);
  if (mkdirat(fd_.get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return Unusable(path, strerror(errno));
  }
  Fd fd(openat(fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return Unusable(path, strerror(errno));
  return Take(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<PrivateFolder>> PrivateFolder::Take(Fd fd, std::string path) {
  RETURN_IF_ERROR(CheckOurs(fd.get(), path));
  return absl::WrapUnique(new PrivateFolder(std::move(path), std::move(fd)));
}

absl::StatusOr<Fd> PrivateFolder::OpenFile(const std::string& name, int flags) const {
  // O_NONBLOCK, because opening a FIFO would wait for its other end. CheckOurs then refuses the
  // FIFO.
  const int careful = flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd file(openat(fd_.get(), name.c_str(), careful, 0600));
  if (!file.valid() && errno == ENOENT) return absl::NotFoundError(PathOf(name));
  if (!file.valid() && errno == ELOOP) return Unusable(PathOf(name), "it is a link");
  if (!file.valid()) return Unusable(PathOf(name), strerror(errno));
  RETURN_IF_ERROR(CheckOurs(file.get(), PathOf(name)));
  return file;
}

absl::StatusOr<Fd> PrivateFolder::NewFile(const std::string& name) const {
  Remove(name);
  return OpenFile(name, O_RDWR | O_CREAT | O_EXCL);
}

bool PrivateFolder::Has(const std::string& name) const {
  struct stat info = {};
  return fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> PrivateFolder::Names() const { return NamesIn(fd_.get()); }

absl::Status PrivateFolder::Rename(const std::string& from, const std::string& to) const {
  if (renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("can't rename ", PathOf(from), ": ", strerror(errno)));
}

void PrivateFolder::Remove(const std::string& name) const {
  (void)unlinkat(fd_.get(), name.c_str(), 0);
}

void PrivateFolder::RemoveAll(const std::string& name) const { RemoveAllIn(fd_.get(), name); }

absl::Status PrivateFolder::Sync() const {
  if (fsync(fd_.get()) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("can't sync ", path_, ": ", strerror(errno)));
}

}  // namespace hvd::os
