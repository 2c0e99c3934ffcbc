#include "launcher/allocation/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "launcher/allocation/excerpt.h"

namespace hvd::launcher::allocation {
namespace {

constexpr size_t kMostHosts = 1 << 16;

// A part of a name: a literal text, and the numbers of the bracket group that follows it.
struct Piece {
  std::string text;
  std::vector<std::string> numbers;  // none: the end of the name
};

absl::Status Invalid(absl::string_view word, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", Excerpt(word), "' is not an entry of a list of hosts such as gpu[1-3,07]: ", why));
}

bool IsNumber(absl::string_view text) {
  // 18 digits fit into 64 bits, so neither a number nor a difference overflows.
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Expands "1-3,07" to the numbers 1, 2, 3, 07.
absl::StatusOr<std::vector<std::string>> ExpandNumbers(absl::string_view word,
                                                       absl::string_view ranges) {
  std::vector<std::string> numbers;
  for (const absl::string_view range : absl::StrSplit(ranges, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    const bool single = range.size() == ends.first.size();
    int64_t low = 0;
    int64_t high = 0;
    if (!IsNumber(ends.first) || !(single || IsNumber(ends.second)) ||
        !absl::SimpleAtoi(ends.first, &low) ||
        !absl::SimpleAtoi(single ? ends.first : ends.second, &high) || high < low) {
      return Invalid(word, absl::StrCat("'", Excerpt(range), "' is neither a number nor a range"));
    }
    if (static_cast<uint64_t>(high - low) >= kMostHosts) return Invalid(word, "too many hosts");
    for (int64_t number = low; number <= high; ++number) {
      // Leading zeros of the first number give the width of all, as in Slurm: [08-10] is 08, 09,
      // 10.
      numbers.push_back(absl::StrFormat("%0*d", static_cast<int>(ends.first.size()), number));
    }
  }
  return numbers;
}

absl::StatusOr<std::vector<Piece>> SplitName(absl::string_view word) {
  std::vector<Piece> pieces;
  for (absl::string_view rest = word;;) {
    const size_t open = rest.find('[');
    Piece& piece = pieces.emplace_back();
    piece.text = std::string(rest.substr(0, open));
    for (const char c : piece.text) {
      const bool is_name = absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
      if (!is_name)
        return Invalid(word, absl::StrCat("no name has a '", Excerpt(std::string(1, c)), "'"));
    }
    if (open == absl::string_view::npos) return pieces;
    const size_t close = rest.find(']', open);
    if (close == absl::string_view::npos) return Invalid(word, "a bracket is not closed");
    ASSIGN_OR_RETURN(piece.numbers, ExpandNumbers(word, rest.substr(open + 1, close - open - 1)));
    rest.remove_prefix(close + 1);
  }
}

// The indices of the bracket groups, in the order in which Slurm iterates over them, from the
// outermost loop (slowest) to the innermost: the last group but one, then the groups before it from
// right to left, then the last group.
std::vector<size_t> BracketOrder(size_t brackets) {
  std::vector<size_t> order;
  for (size_t i = brackets; i-- > 0;) {
    if (i + 1 < brackets) order.push_back(i);
  }
  if (brackets > 0) order.push_back(brackets - 1);
  return order;
}

std::string NameOf(const std::vector<Piece>& pieces, const std::vector<size_t>& chosen) {
  std::string name;
  for (size_t i = 0; i < pieces.size(); ++i) {
    name += pieces[i].text;
    if (i < chosen.size()) name += pieces[i].numbers[chosen[i]];
  }
  return name;
}

// Advances `chosen` to the next combination of one number per bracket group, like an odometer.
// Returns false after the last one.
bool Advance(const std::vector<Piece>& pieces, const std::vector<size_t>& order,
             std::vector<size_t>* chosen) {
  for (size_t i = order.size(); i-- > 0;) {
    size_t& choice = (*chosen)[order[i]];
    if (++choice < pieces[order[i]].numbers.size()) return true;
    choice = 0;
  }
  return false;
}

absl::Status ExpandWord(absl::string_view word, std::vector<std::string>* hosts) {
  ASSIGN_OR_RETURN(const std::vector<Piece> pieces, SplitName(word));
  const std::vector<size_t> order = BracketOrder(pieces.size() - 1);
  std::vector<size_t> chosen(order.size(), 0);
  do {
    // Checked for each host: several groups of brackets multiply, and the product is not bounded by
    // their lengths.
    if (hosts->size() == kMostHosts) return Invalid(word, "too many hosts");
    hosts->push_back(NameOf(pieces, chosen));
  } while (Advance(pieces, order, &chosen));
  // ssh and similar commands would read such a name as an option.
  return hosts->back()[0] == '-' ? Invalid(word, "no name begins with a '-'") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view list) {
  std::vector<std::string> hosts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    // An end like a comma, so that the last word needs no code of its own.
    const char c = i < list.size() ? list[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    const bool ends = i == list.size() || (depth == 0 && (c == ',' || absl::ascii_isspace(c)));
    if (!ends) continue;
    if (i > begin) RETURN_IF_ERROR(ExpandWord(list.substr(begin, i - begin), &hosts));
    begin = i + 1;
  }
  return hosts;
}

}  // namespace hvd::launcher::allocation
