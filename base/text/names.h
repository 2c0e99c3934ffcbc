// The check of names, and the form of texts of any content, for messages of one line. Pure.
#ifndef BASE_TEXT_NAMES_H_
#define BASE_TEXT_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::text {

// Of a host, a machine or a job: names stand in logs, tables and messages. An empty one passes.
// Errors:
//   - InvalidArgument: "WHAT: 'NAME' is no name: ..."; it has blanks or control characters, is not
//     UTF-8, or is longer than 255 bytes.
absl::Status CheckName(absl::string_view what, absl::string_view name);

// Control characters are written as "\n" and "\x1b".
std::string OnOneLine(absl::string_view text);

}  // namespace hvd::text

#endif  // BASE_TEXT_NAMES_H_
