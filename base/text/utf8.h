// Text that may not be valid UTF-8.
#ifndef BASE_TEXT_UTF8_H_
#define BASE_TEXT_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hvd::text {

// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD: Protobuf's strings
// must be UTF-8.
std::string ToUtf8(absl::string_view text);

}  // namespace hvd::text

#endif  // BASE_TEXT_UTF8_H_
