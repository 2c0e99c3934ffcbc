// A private folder, for secrets and trusted state: only its owner can read it or put anything into
// it.
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

// Holds the folder itself, not its name: a later replacement under that name is not used. Links in
// the folder are never followed. Thread-safe.
class PrivateFolder {
 public:
  // Makes the folder if there is none.
  // Errors:
  //   - InvalidArgument: there can't be one, or it is another user's or open to others; names it
  //     and says why.
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> Open(const std::string& path);

  // Opens, as above, the folder `name` in this one.
  absl::StatusOr<std::unique_ptr<PrivateFolder>> OpenFolder(const std::string& name) const;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // Opens a file of the folder; `flags` are open()'s. A new file is accessible to its owner only.
  // Errors:
  //   - NotFound: there is no such file.
  //   - InvalidArgument: it can't be opened, is not a file, or is another user's or open to others;
  //     names it and says why.
  absl::StatusOr<Fd> OpenFile(const std::string& name, int flags) const;

  // Makes a new file, for reading and writing, in place of one of that name.
  // Errors:
  //   - InvalidArgument: it can't be made; names it and says why.
  absl::StatusOr<Fd> NewFile(const std::string& name) const;

  // Whether there is anything of that name.
  bool Has(const std::string& name) const;
  // The names of what is in it, sorted.
  std::vector<std::string> Names() const;

  // Renames the file `from` to `to`, atomically.
  // Errors:
  //   - Internal: it can't be renamed; says why.
  absl::Status Rename(const std::string& from, const std::string& to) const;
  // Harmless if there is none.
  void Remove(const std::string& name) const;
  // Removes what has that name and, of a folder, all that is in it, as far as that is possible.
  void RemoveAll(const std::string& name) const;
  // Returns when the names of the files are on disk.
  // Errors:
  //   - Internal: fsync failed; says why.
  absl::Status Sync() const;

 private:
  PrivateFolder(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> OpenAt(int parent, const std::string& name,
                                                               int flags, std::string path);

  const std::string path_;
  const Fd fd_;
};

}  // namespace hvd::os

#endif  // BASE_OS_PRIVATE_FOLDER_H_
