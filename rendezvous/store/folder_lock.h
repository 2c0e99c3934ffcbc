// The lock of a store's folder: one process has it, as long as it lives.
#ifndef RENDEZVOUS_STORE_FOLDER_LOCK_H_
#define RENDEZVOUS_STORE_FOLDER_LOCK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/os/private_folder.h"

namespace hvd::rendezvous::store {

// Holds the lock as long as the result lives.
// Errors:
//   - FailedPrecondition: another process has it, or another store of this one.
//   - InvalidArgument: there can be no lock; says why.
absl::StatusOr<Fd> LockFolder(const os::PrivateFolder& folder);

// Whether this error says that the folder is locked.
bool IsLockedFolder(const absl::Status& status);

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_FOLDER_LOCK_H_
