#include "base/text/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/text/json.h"
#include "base/text/shortened.h"

namespace hvd::text {
namespace {

constexpr size_t kLongestName = 255;

// Returns the length of the control character with which `text` begins; 0: none. UTF-8 has more of
// them than ASCII: U+0080 to U+009F, of which U+009B begins escape sequences of terminals.
size_t LeadingControl(absl::string_view text) {
  if (text.empty()) return 0;
  if (absl::ascii_iscntrl(text[0])) return 1;
  const bool is_c1 =
      text.size() > 1 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0;
  return is_c1 ? 2 : 0;
}

}  // namespace

absl::Status CheckName(absl::string_view what, absl::string_view name) {
  bool is_word = IsUtf8(name) && name.size() <= kLongestName;
  for (size_t i = 0; i < name.size(); ++i) {
    is_word = is_word && name[i] != ' ' && LeadingControl(name.substr(i)) == 0;
  }
  if (is_word) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": '", absl::CHexEscape(name.substr(0, kLongestName)), "' is no name: at most ",
      kLongestName, " bytes of UTF-8 without blanks and control characters"));
}

std::string OnOneLine(absl::string_view text) {
  std::string line;
  while (!text.empty()) {
    const size_t control = LeadingControl(text);
    const absl::string_view next = text.substr(0, std::max<size_t>(control, 1));
    line += control > 0 ? absl::CHexEscape(next) : std::string(next);
    text.remove_prefix(next.size());
  }
  return line;
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kMost = 100;
  return absl::StrCat("'", Shortened(OnOneLine(text.substr(0, 4 * kMost)), kMost), "'");
}

}  // namespace hvd::text
