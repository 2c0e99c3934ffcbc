// A private folder for secrets and trusted state, which only its owner can read and write.
#ifndef BASE_OS_PRIVATE_FOLDER_H_
#define BASE_OS_PRIVATE_FOLDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

// Holds a descriptor of the folder, so that a later replacement under its name has no effect. Links
// in the folder are never followed. Thread-safe.
class PrivateFolder {
 public:
  // Opens the folder by the rule of OpenProtected; makes it if it does not exist.
  // Errors:
  //   - InvalidArgument: the folder can't be made, belongs to another user, as a link to it may, or
  //     is accessible to others; names the folder and the reason.
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> Open(const std::string& path);

  // Opens the subfolder `name` in the same way.
  // Errors:
  //   - InvalidArgument: as Open.
  absl::StatusOr<std::unique_ptr<PrivateFolder>> OpenFolder(const std::string& name) const;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // Opens a file of the folder; `flags` are open()'s. A new file is accessible to its owner only.
  // Errors:
  //   - NotFound: there is no such file.
  //   - InvalidArgument: the file can't be opened, is not a regular file, belongs to another user,
  //     or is accessible to others; names the file and the reason.
  absl::StatusOr<Fd> OpenFile(const std::string& name, int flags) const;

  // Makes a new file for reading and writing, and replaces an existing one of that name.
  // Errors:
  //   - InvalidArgument: the file can't be made; names the file and the reason.
  absl::StatusOr<Fd> NewFile(const std::string& name) const;

  // Whether the folder has an entry of that name.
  bool Has(const std::string& name) const;
  // The names of the folder's entries, sorted.
  std::vector<std::string> Names() const;

  // Renames the file `from` to `to`, atomically.
  // Errors:
  //   - Internal: the file can't be renamed; says why.
  absl::Status Rename(const std::string& from, const std::string& to) const;
  // Removes a file. Has no effect if there is none.
  void Remove(const std::string& name) const;
  // Removes the file or folder of that name with all its contents, as far as possible.
  void RemoveAll(const std::string& name) const;
  // Syncs the folder's entries (the files' names) to disk.
  // Errors:
  //   - Internal: fsync failed; says why.
  absl::Status Sync() const;

 private:
  PrivateFolder(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  // Takes an open folder over.
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> Take(Fd fd, std::string path);

  const std::string path_;
  const Fd fd_;
};

}  // namespace hvd::os

#endif  // BASE_OS_PRIVATE_FOLDER_H_
