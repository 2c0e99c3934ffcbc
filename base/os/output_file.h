// The opening of output files whose paths a user has given: logs, timelines.
#ifndef BASE_OS_OUTPUT_FILE_H_
#define BASE_OS_OUTPUT_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

// What happens to the content of a file that is already there.
enum class OldContent { kKept, kDropped };

// Opens the file for writing, and makes it if it is missing; with kKept all writes append. In a
// folder that all users may write to, such as /tmp, a link is followed only if it belongs to this
// process's user or to the folder's owner: the rule of the kernel's fs.protected_symlinks, which is
// off on some systems. Only the last component of the path is checked. Never blocks, not even for a
// pipe without a reader; writes to the descriptor may.
// Errors: the message is the reason alone, without the path.
//   - PermissionDenied: a link of another user.
//   - FailedPrecondition: a pipe without a reader.
//   - Unavailable: any other reason.
absl::StatusOr<Fd> OpenOutputFile(const std::string& path, OldContent old, mode_t mode);

// Checks what is at `path`, if anything, by the same rule, for a folder to be written into.
// Errors:
//   - PermissionDenied: it belongs to another user, in a folder that all users may write to.
absl::Status CheckOwner(const std::string& path);

}  // namespace hvd::os

#endif  // BASE_OS_OUTPUT_FILE_H_
