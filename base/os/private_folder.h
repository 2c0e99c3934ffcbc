// A folder of secrets and of what is believed later: nobody but its owner can look into it or put
// anything there.
#ifndef BASE_OS_PRIVATE_FOLDER_H_
#define BASE_OS_PRIVATE_FOLDER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

// Holds the folder itself, not its name: what is put in the name's place later is not looked at.
// Links in it are never followed. Thread-safe.
class PrivateFolder {
 public:
  // Makes the folder if there is none.
  //   InvalidArgument: there can't be one, or it is another user's or open to others; names it and
  //   says why.
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // A file in it; `flags` are open()'s. One that is made is its owner's alone.
  //   NotFound.   InvalidArgument: it can't be opened, is no file, or is another user's or open to
  //   others; names it and says why.
  absl::StatusOr<Fd> OpenFile(const std::string& name, int flags) const;

  // A new file, to be read and written, in the place of what has that name.
  //   InvalidArgument: it can't be made; names it and says why.
  absl::StatusOr<Fd> NewFile(const std::string& name) const;

  // Gives the file `from` the name `to`, at once.   Internal: says why.
  absl::Status Rename(const std::string& from, const std::string& to) const;
  // Harmless if there is none.
  void Remove(const std::string& name) const;
  // Returns when names are on disk.   Internal: says why.
  absl::Status Sync() const;

 private:
  PrivateFolder(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string path_;
  const Fd fd_;
};

}  // namespace hvd::os

#endif  // BASE_OS_PRIVATE_FOLDER_H_
