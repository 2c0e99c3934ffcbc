#include "rendezvous/phrases/phrases.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/text/names.h"

namespace hvd::rendezvous::phrases {
namespace {

// The maximum number of elements in a list: enough to see a pattern, and short enough for one line
// in a job of thousands.
constexpr size_t kMaxListed = 8;

template <typename T>
std::string List(absl::string_view noun, const std::vector<T>& items) {
  const size_t listed = std::min(items.size(), kMaxListed);
  std::string text = absl::StrCat(
      noun, items.size() == 1 ? " " : "s ",
      absl::StrJoin(items.begin(), items.begin() + static_cast<ptrdiff_t>(listed), ", "));
  if (items.size() > listed) absl::StrAppend(&text, " and ", items.size() - listed, " more");
  return text;
}

}  // namespace

std::string RankOnHost(int rank, absl::string_view host) {
  return absl::StrCat("rank ", rank, " on host ", host);
}

std::string Ranks(const std::vector<int>& ranks) { return List("rank", ranks); }

std::string Hosts(const std::vector<std::string>& hosts) { return List("host", hosts); }

std::string Count(int count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string OneLine(absl::string_view text) {
  return text::OnOneLine(absl::StrReplaceAll(absl::StripAsciiWhitespace(text),
                                             {{"\r\n", " "}, {"\n", " "}, {"\r", " "}}));
}

}  // namespace hvd::rendezvous::phrases
