#include "base/text/json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd::text {
namespace {

// The length in bytes of the UTF-8 sequence at the front of `text`; 0: it is not valid.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80                     ? 1
                        : first >= 0xC2 && first <= 0xDF ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and code points beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) {
      quoted += "\\ufffd";
    } else if (text[0] == '"' || text[0] == '\\') {
      quoted += '\\';
      quoted += text[0];
    } else if (static_cast<unsigned char>(text[0]) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", text[0]);
    } else {
      absl::StrAppend(&quoted, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  quoted += '"';
  return quoted;
}

std::string JsonTime(absl::Time time) {
  return absl::FormatTime("\"%Y-%m-%d%ET%H:%M:%E6SZ\"", time, absl::UTCTimeZone());
}

}  // namespace hvd::text
