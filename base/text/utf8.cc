#include "base/text/utf8.h"

#include <cstdint>

namespace hvd::text {
namespace {

uint8_t ByteAt(absl::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// The length in bytes of the UTF-8 character at the front of `text`; 0: it is not valid (truncated,
// overlong, a surrogate, too large).
size_t CharacterBytes(absl::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((ByteAt(text, i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = ByteAt(text, 1);
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return length;
}

}  // namespace

std::string ToUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    if (length == 0) {
      result += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      result.append(text.data(), length);
      text.remove_prefix(length);
    }
  }
  return result;
}

}  // namespace hvd::text
