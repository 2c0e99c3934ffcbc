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
  // flock, not a file with a process number: the kernel releases the lock with the last descriptor,
  // however the process ends. A child that was forked without exec keeps it.
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't lock ", folder.path(), ": ", strerror(errno)));
  }
  absl::Status locked =
      absl::FailedPreconditionError(absl::StrCat("another process uses ", folder.path()));
  // The code alone is not enough: FailedPrecondition also means another format.
  locked.SetPayload(kLockedMark, absl::Cord());
  return locked;
}

bool IsLockedFolder(const absl::Status& status) {
  return status.GetPayload(kLockedMark).has_value();
}

}  // namespace hvd::rendezvous::store
