#include "tests/support/recorded_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdarg>
#include <filesystem>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kSector = 512;

RecordedDisk* recording = nullptr;

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = readlink(link.c_str(), path, sizeof(path));
  return length < 0 ? "" : std::string(path, static_cast<size_t>(length));
}

uint64_t InodeOf(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

bool Draw(std::mt19937& random) { return random() % 2 == 0; }

// A file's contents, of which some may not be on disk yet.
class File {
 public:
  void Write(size_t offset, const std::string& bytes) {
    now_.resize(std::max(now_.size(), offset + bytes.size()), '\0');
    now_.replace(offset, bytes.size(), bytes);
  }
  void Truncate(size_t size) { now_.resize(size, '\0'); }
  void Sync() { synced_ = now_; }

  std::string AfterCrash(std::mt19937& random) const {
    const auto [least, most] = std::minmax({synced_.size(), now_.size()});
    std::string left(least + random() % (most - least + 1), '\0');
    if (Draw(random)) left.resize(now_.size(), '\0');
    const bool keeps_all = Draw(random);  // but the end
    for (size_t at = 0; at < left.size(); at += kSector) {
      const std::string& from = keeps_all || Draw(random) ? now_ : synced_;
      if (at >= from.size()) continue;
      const size_t bytes = std::min({kSector, left.size() - at, from.size() - at});
      left.replace(at, bytes, from, at, bytes);
    }
    return left;
  }

 private:
  std::string synced_;
  std::string now_;
};

}  // namespace

struct RecordedDisk::Hooks {
  // Whether the descriptor is of the folder, or of a file in it.
  static bool IsFolder(int fd) { return recording != nullptr && PathOf(fd) == recording->folder_; }
  static bool IsIn(int fd) {
    return recording != nullptr && PathOf(fd).rfind(recording->folder_ + "/", 0) == 0;
  }
  static void Add(Kind kind, uint64_t file, std::string name = "", std::string to = "") {
    recording->calls_.push_back({kind, file, std::move(name), std::move(to), 0, ""});
  }

  static void Created(int folder, const char* name, int fd) {
    if (fd >= 0 && IsFolder(folder)) Add(Kind::kCreate, InodeOf(fd), name);
  }
  static void Written(int fd, const void* bytes, ssize_t size) {
    if (size <= 0 || !IsIn(fd)) return;
    const auto end = static_cast<size_t>(lseek(fd, 0, SEEK_CUR));
    const auto length = static_cast<size_t>(size);
    recording->calls_.push_back({Kind::kWrite, InodeOf(fd), "", "", end - length,
                                 std::string(static_cast<const char*>(bytes), length)});
  }
  static void Truncated(int fd, off_t size) {
    if (!IsIn(fd)) return;
    recording->calls_.push_back(
        {Kind::kTruncate, InodeOf(fd), "", "", static_cast<size_t>(size), ""});
  }
  static void Synced(int fd) {
    if (IsFolder(fd)) {
      Add(Kind::kSyncFolder, 0);
    } else if (IsIn(fd)) {
      Add(Kind::kSync, InodeOf(fd));
    }
  }
  static void Renamed(int folder, const char* from, const char* to) {
    if (IsFolder(folder)) Add(Kind::kRename, 0, from, to);
  }
  static void Removed(int folder, const char* name) {
    if (IsFolder(folder)) Add(Kind::kRemove, 0, name);
  }
};

RecordedDisk::RecordedDisk(const std::string& folder)
    : folder_(std::filesystem::canonical(folder)) {
  recording = this;
}

RecordedDisk::~RecordedDisk() { recording = nullptr; }

RecordedDisk::Files RecordedDisk::AfterCrash(size_t calls, std::mt19937& random) const {
  std::map<uint64_t, File> files;
  std::map<std::string, uint64_t> names;  // the inode of each
  std::vector<const Call*> unsynced;      // changes of names
  const auto apply = [&names](const Call& change) {
    if (change.kind == Kind::kCreate) names[change.name] = change.file;
    if (change.kind == Kind::kRename) names[change.to] = names[change.name];
    if (change.kind != Kind::kCreate) names.erase(change.name);
  };
  for (size_t i = 0; i < calls; ++i) {
    const Call& call = calls_[i];
    switch (call.kind) {
      case Kind::kWrite:
        files[call.file].Write(call.offset, call.bytes);
        break;
      case Kind::kTruncate:
        files[call.file].Truncate(call.offset);
        break;
      case Kind::kSync:
        files[call.file].Sync();
        break;
      case Kind::kCreate:
        files[call.file] = File();  // an inode may be used again
        unsynced.push_back(&call);
        break;
      case Kind::kRename:
      case Kind::kRemove:
        unsynced.push_back(&call);
        break;
      case Kind::kSyncFolder:
        for (const Call* change : unsynced) apply(*change);
        unsynced.clear();
        break;
    }
  }
  const size_t kept = random() % (unsynced.size() + 1);
  for (size_t i = 0; i < kept; ++i) apply(*unsynced[i]);
  Files left;
  for (const auto& [name, file] : names) left[name] = files[file].AfterCrash(random);
  return left;
}

}  // namespace hvd

// In place of those of the C library.
extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  const ssize_t written = syscall(SYS_write, fd, bytes, size);
  hvd::RecordedDisk::Hooks::Written(fd, bytes, written);
  return written;
}

int ftruncate(int fd, off_t size) noexcept {
  const auto result = static_cast<int>(syscall(SYS_ftruncate, fd, size));
  if (result == 0) hvd::RecordedDisk::Hooks::Truncated(fd, size);
  return result;
}

int fsync(int fd) {
  const auto result = static_cast<int>(syscall(SYS_fsync, fd));
  if (result == 0) hvd::RecordedDisk::Hooks::Synced(fd);
  return result;
}

int fdatasync(int fd) {
  const auto result = static_cast<int>(syscall(SYS_fdatasync, fd));
  if (result == 0) hvd::RecordedDisk::Hooks::Synced(fd);
  return result;
}

int openat(int folder, const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const auto fd = static_cast<int>(syscall(SYS_openat, folder, name, flags, mode));
  if ((flags & O_CREAT) != 0) hvd::RecordedDisk::Hooks::Created(folder, name, fd);
  return fd;
}

int renameat(int folder, const char* from, int, const char* to) noexcept {
  const auto result = static_cast<int>(syscall(SYS_renameat2, folder, from, folder, to, 0));
  if (result == 0) hvd::RecordedDisk::Hooks::Renamed(folder, from, to);
  return result;
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  const auto result = static_cast<int>(syscall(SYS_unlinkat, folder, name, flags));
  if (result == 0) hvd::RecordedDisk::Hooks::Removed(folder, name);
  return result;
}
}
