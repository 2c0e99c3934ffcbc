#include "rendezvous/store/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cstring>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::rendezvous::store {
namespace {

constexpr char kLock[] = "lock";
// The type URL of a payload that marks this error; it does not appear in the message.
constexpr char kLockedMark[] = "horovod/locked";

}  // namespace

absl::StatusOr<Fd> LockFolder(const os::PrivateFolder& folder) {
  ASSIGN_OR_RETURN(Fd lock, folder.OpenFile(kLock, O_RDWR | O_CREAT));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't lock ", folder.path(), ": ", strerror(errno)));
  }
  absl::Status locked =
      absl::FailedPreconditionError(absl::StrCat("another process uses ", folder.path()));
  locked.SetPayload(kLockedMark, absl::Cord());
  return locked;
}

bool IsLockedFolder(const absl::Status& status) {
  return status.GetPayload(kLockedMark).has_value();
}

}  // namespace hvd::rendezvous::store
