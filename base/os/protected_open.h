// The opening of files and folders that a user has named, safe from other users of the host.
//
// The rule, as that of the kernel's fs.protected_symlinks and fs.protected_regular, which are off
// on some systems: in a folder that all users may write to, such as /tmp, a link, file or folder is
// used only if it belongs to this process's user or to the folder's owner, and a file with a second
// name (a hard link) is not written. Only the last component of a path is checked, and that of each
// link that it leads to.
#ifndef BASE_OS_PROTECTED_OPEN_H_
#define BASE_OS_PROTECTED_OPEN_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

// Opens `path`; `flags` and `mode` are open()'s. Checks what it has opened, and not the path, which
// leaves no time for an exchange. O_TRUNC would drop the content before the check: not allowed.
// Errors: the message is the reason alone, without the path.
//   - PermissionDenied: the rule forbids it.
//   - NotFound: there is nothing.
//   - FailedPrecondition: a pipe that has no reader, to be opened for writing with O_NONBLOCK.
//   - Unavailable: any other reason.
absl::StatusOr<Fd> OpenProtected(const std::string& path, int flags, mode_t mode = 0);

// Checks what is at `path`, if anything, by the rule, without following a link.
// Errors:
//   - PermissionDenied: it belongs to another user, in a folder that all users may write to.
absl::Status CheckOwner(const std::string& path);

// The same for the open file of `fd`, whose path, without links, is `path`.
// Errors:
//   - PermissionDenied: as CheckOwner.
absl::Status CheckOwnerOf(int fd, const std::string& path);

// What happens to the content of a file that is already there.
enum class OldContent { kKept, kDropped };

// Opens the file for writing by the rule of OpenProtected, and makes it if it is missing; with
// kKept all writes append. Changes nothing before the check. Never blocks, not even for a pipe
// without a reader; writes to the descriptor may.
// Errors: the message is the reason alone, without the path.
//   - PermissionDenied: the rule forbids it.
//   - NotFound: the folder is missing.
//   - FailedPrecondition: a pipe without a reader.
//   - Unavailable: any other reason.
absl::StatusOr<Fd> OpenOutputFile(const std::string& path, OldContent old, mode_t mode);

}  // namespace hvd::os

#endif  // BASE_OS_PROTECTED_OPEN_H_
