// A record of what a test writes in a folder, and the states in which a crash could leave it.
#ifndef TESTS_SUPPORT_RECORDED_DISK_H_
#define TESTS_SUPPORT_RECORDED_DISK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace hvd {

// While it lives, it records what this process does to the files of the folder, which must be
// empty: by write, ftruncate, fsync and fdatasync, by openat with O_CREAT, renameat and unlinkat.
// Other calls, such as pwrite and rename, are not recorded: add those that the code under test
// uses. One at a time, and not thread-safe.
//
// What a crash may leave is what POSIX allows:
// - What was written since a file's last sync is there or not, sector by sector. A sector that is
//   not is as before; beyond the end that was synced it is zeros, or the file is shorter.
// - Names are those of the folder's last sync, or after any number of the later changes, in order.
class RecordedDisk {
 public:
  using Files = std::map<std::string, std::string>;  // contents by name

  explicit RecordedDisk(const std::string& folder);
  ~RecordedDisk();
  RecordedDisk(const RecordedDisk&) = delete;
  RecordedDisk& operator=(const RecordedDisk&) = delete;

  // The number of calls so far.
  size_t calls() const { return calls_.size(); }
  // What a crash after the first `calls` calls may leave.
  Files AfterCrash(size_t calls, std::mt19937& random) const;

  // For the functions that stand in for those of the C library.
  struct Hooks;

 private:
  enum class Kind { kCreate, kWrite, kTruncate, kSync, kRename, kRemove, kSyncFolder };
  struct Call {
    Kind kind;
    uint64_t file = 0;  // its inode
    std::string name;
    std::string to;  // kRename
    size_t offset = 0;
    std::string bytes;
  };

  const std::string folder_;
  std::vector<Call> calls_;
};

}  // namespace hvd

#endif  // TESTS_SUPPORT_RECORDED_DISK_H_
