#include "base/text/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/text/json.h"

namespace hvd::text {
namespace {

constexpr size_t kLongestName = 255;

}  // namespace

absl::Status CheckName(absl::string_view what, absl::string_view name) {
  const bool is_word = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isgraph(c) || !absl::ascii_isascii(c);
  });
  if (is_word && IsUtf8(name) && name.size() <= kLongestName) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": '", absl::CHexEscape(name.substr(0, kLongestName)), "' is no name: at most ",
      kLongestName, " bytes of UTF-8 without blanks and control characters"));
}

std::string OnOneLine(absl::string_view text) {
  std::string line;
  for (const char c : text) {
    line += absl::ascii_iscntrl(c) ? absl::CHexEscape(absl::string_view(&c, 1)) : std::string(1, c);
  }
  return line;
}

}  // namespace hvd::text
