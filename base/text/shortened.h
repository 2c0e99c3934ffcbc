// Shortening of long texts.
#ifndef BASE_TEXT_SHORTENED_H_
#define BASE_TEXT_SHORTENED_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::text {

// The longest text that a process tells another one: an exception, a reason, a line of output.
// What is longer is of no use in a message, and fills journals, logs and terminals.
inline constexpr size_t kLongestText = 4096;

// `text` if it has at most `most` bytes. Otherwise its beginning and its end, and between them how
// many bytes are left out; about `most` bytes in all. Cuts between characters of UTF-8.
std::string Shortened(absl::string_view text, size_t most = kLongestText);

}  // namespace hvd::text

#endif  // BASE_TEXT_SHORTENED_H_
