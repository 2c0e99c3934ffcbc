// The lock file of a store's folder, held by one process at a time.
#ifndef RENDEZVOUS_STORE_FOLDER_LOCK_H_
#define RENDEZVOUS_STORE_FOLDER_LOCK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/os/private_folder.h"

namespace hvd::rendezvous::store {

// Takes the lock. It is released when the result is destroyed, or the process ends.
// Errors:
//   - FailedPrecondition: another process holds it, or another store in this process.
//   - InvalidArgument: the lock file can't be created; says why.
absl::StatusOr<Fd> LockFolder(const os::PrivateFolder& folder);

// Whether the error is LockFolder's FailedPrecondition.
bool IsLockedFolder(const absl::Status& status);

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_FOLDER_LOCK_H_
