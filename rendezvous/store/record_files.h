// Small files in a private folder: each holds one checksummed record and is replaced atomically.
#ifndef RENDEZVOUS_STORE_RECORD_FILES_H_
#define RENDEZVOUS_STORE_RECORD_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/private_folder.h"

namespace hvd::rendezvous::store {

// Returns the bytes of the file, without checking the record.
// Errors:
//   - NotFound: there is no such file.
//   - InvalidArgument: the file can't be opened; says why.
//   - DataLoss: the file can't be read.
absl::StatusOr<std::string> ReadFile(const os::PrivateFolder& folder, const std::string& name);

// Replaces the file atomically and returns when it is on disk: after a crash, there is the old or
// the new file. Uses a temporary file NAME.new.
// Errors:
//   - InvalidArgument, Internal: the file can't be written; says why.
absl::Status ReplaceRecord(const os::PrivateFolder& folder, const std::string& name,
                           absl::string_view payload);

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_RECORD_FILES_H_
