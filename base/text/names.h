// The validation of names, and the escaping of texts for one-line messages. Pure.
#ifndef BASE_TEXT_NAMES_H_
#define BASE_TEXT_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::text {

// Checks the name of a host, a machine or a job, which appears in logs, tables and messages. An
// empty name is valid.
// Errors:
//   - InvalidArgument: "WHAT: 'NAME' is no name: ...": the name has blanks or control characters,
//     is not UTF-8, or is longer than 255 bytes.
absl::Status CheckName(absl::string_view what, absl::string_view name);

// Returns `text` with control characters escaped, as "\n" or "\x1b".
std::string OnOneLine(absl::string_view text);

// What somebody else has written, as an error may quote it: in quotes, on one line, shortened to
// some 100 bytes.
std::string Quoted(absl::string_view text);

}  // namespace hvd::text

#endif  // BASE_TEXT_NAMES_H_
