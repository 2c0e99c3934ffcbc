// Small files of a private folder that hold one checksummed record each, replaced atomically.
#ifndef RENDEZVOUS_STORE_RECORD_FILES_H_
#define RENDEZVOUS_STORE_RECORD_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/private_folder.h"

namespace hvd::rendezvous::store {

// The bytes of the file, be it a good one.
// Errors:
//   - NotFound: there is no such file.
//   - InvalidArgument: it can't be opened; says why.
//   - DataLoss: it can't be read.
absl::StatusOr<std::string> ReadFile(const os::PrivateFolder& folder, const std::string& name);

// Returns when the file is on disk: after a crash there is the old or the new one, whole. There is
// a file NAME.new at times.
// Errors:
//   - InvalidArgument, Internal: it can't be written; says why.
absl::Status ReplaceRecord(const os::PrivateFolder& folder, const std::string& name,
                           absl::string_view payload);

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_RECORD_FILES_H_
