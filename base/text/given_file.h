// The texts of files that a user names in options.
#ifndef BASE_TEXT_GIVEN_FILE_H_
#define BASE_TEXT_GIVEN_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace hvd::text {

// Reads a whole file, or what comes through a pipe until its end. Not more than `most_mib` MiB: a
// device such as /dev/zero has no end. Thread-safe.
// Errors, whose messages end a sentence about the file:
//   - NotFound: it can't be opened or read: "No such file or directory".
//   - InvalidArgument: it is longer: "it is longer than 1 MiB".
absl::StatusOr<std::string> ReadGivenFile(const std::string& path, size_t most_mib);

}  // namespace hvd::text

#endif  // BASE_TEXT_GIVEN_FILE_H_
