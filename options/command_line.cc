#include "options/command_line.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/edit_distance.h"

namespace hvd::options {
namespace {

// One option found in the arguments.
struct Found {
  const FlagSpec* flag = nullptr;
  std::string written;  // as the user spelled it
  bool has_value = false;
  std::string value;
};

// A single "-" is a word, by convention the name of stdin.
bool IsOption(const std::string& arg) { return arg.size() > 1 && arg[0] == '-'; }

// "-1" looks like an option, but may be a value.
bool IsNegativeNumber(const std::string& arg) {
  return arg.size() > 1 && arg[0] == '-' && (absl::ascii_isdigit(arg[1]) || arg[1] == '.');
}

const FlagSpec* FindExact(const std::vector<FlagSpec>& flags, const std::string& spelling) {
  for (const FlagSpec& flag : flags) {
    const auto& names = flag.spellings;
    if (std::find(names.begin(), names.end(), spelling) != names.end()) return &flag;
  }
  return nullptr;
}

absl::string_view WithoutDashes(absl::string_view spelling) {
  return absl::StripPrefix(absl::StripPrefix(spelling, "-"), "-");
}

absl::Status DidYouMean(const std::string& written, const std::string& spelling) {
  return absl::InvalidArgumentError(
      absl::StrCat("unknown option ", written, "; did you mean ", spelling, "?"));
}

// The spelling that consists of the same letters in another order: "-np" for "-pn", which would
// otherwise be read as "-p" with the value "n". Empty if there is none.
std::string WithTheSameLetters(const std::vector<FlagSpec>& flags, const std::string& written) {
  for (const FlagSpec& flag : flags) {
    if (flag.exact) continue;
    for (const std::string& spelling : flag.spellings) {
      const bool same =
          std::is_permutation(spelling.begin(), spelling.end(), written.begin(), written.end());
      if (same) return spelling;
    }
  }
  return "";
}

absl::Status Unknown(const std::vector<FlagSpec>& flags, const std::string& written,
                     const std::string& program) {
  const absl::string_view bare = WithoutDashes(written);
  const int allowed = std::max<int>(1, bare.size() / 3);
  // Compares the distance without dashes first, then that with dashes: among equally similar
  // spellings the one with the same number of dashes wins.
  std::pair<int, int> best_distance(allowed + 1, 0);
  std::string best;
  for (const FlagSpec& flag : flags) {
    if (flag.exact) continue;
    for (const std::string& spelling : flag.spellings) {
      // One letter resembles everything.
      if (WithoutDashes(spelling).size() < 2) continue;
      const std::pair<int, int> distance(text::EditDistance(bare, WithoutDashes(spelling)),
                                         text::EditDistance(written, spelling));
      if (distance.first > allowed || distance >= best_distance) continue;
      best_distance = distance;
      best = spelling;
    }
  }
  if (!best.empty()) return DidYouMean(written, best);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown option ", written, "; ", program, " --help lists all"));
}

// The flag that has a spelling with the prefix `written`; null if there is none. InvalidArgument if
// there are several.
absl::StatusOr<const FlagSpec*> FindByBeginning(const std::vector<FlagSpec>& flags,
                                                const std::string& written) {
  // Flags are counted, not spellings: two spellings of one flag are not ambiguous.
  std::set<const FlagSpec*> matches;
  std::set<std::string> names;
  for (const FlagSpec& flag : flags) {
    if (flag.exact) continue;
    for (const std::string& spelling : flag.spellings) {
      // "-p" itself would have been found already.
      if (spelling.size() == 2 || !absl::StartsWith(spelling, written)) continue;
      matches.insert(&flag);
      names.insert(spelling);
    }
  }
  if (matches.empty()) return nullptr;
  if (matches.size() == 1) return *matches.begin();
  return absl::InvalidArgumentError(
      absl::StrCat("option ", written, " is ambiguous: ", absl::StrJoin(names, ", ")));
}

// Recognises "-p22": a one-letter option with its value attached.
bool MatchAttached(const std::vector<FlagSpec>& flags, const std::string& arg, Found* found) {
  if (absl::StartsWith(arg, "--")) return false;
  const FlagSpec* flag = FindExact(flags, arg.substr(0, 2));
  if (flag == nullptr || !flag->takes_value) return false;
  *found = {flag, arg.substr(0, 2), true, arg.substr(2)};
  return true;
}

// Finds the flag of an argument, in this order: an exact spelling, "NAME=VALUE", an
// attached value that contains '=', an unambiguous prefix, an attached value. A misspelling is
// checked before the last one. A prefix precedes an attached value: "-prefix-time" must not become
// "-p" with the port "refix-time".
absl::StatusOr<Found> Identify(const std::vector<FlagSpec>& flags, const std::string& arg,
                               const std::string& program) {
  Found found;
  found.flag = FindExact(flags, arg);
  found.written = arg;
  if (found.flag != nullptr) return found;
  const size_t equals = arg.find('=');
  if (equals != std::string::npos) {
    found.written = arg.substr(0, equals);
    found.has_value = true;
    found.value = arg.substr(equals + 1);
    found.flag = FindExact(flags, found.written);
    // In "-xNAME=VALUE" the '=' belongs to the value of "-x".
    if (found.flag != nullptr && found.written.size() > 2) return found;
    if (found.flag != nullptr && found.flag->takes_value) return found;
  }
  Found attached;
  if (found.has_value && MatchAttached(flags, arg, &attached)) return attached;
  ASSIGN_OR_RETURN(found.flag, FindByBeginning(flags, found.written));
  if (found.flag != nullptr) return found;
  const std::string meant = WithTheSameLetters(flags, arg);
  if (!meant.empty()) return DidYouMean(arg, meant);
  if (MatchAttached(flags, arg, &attached)) return attached;
  return Unknown(flags, found.written, program);
}

absl::Status TakeExtraValues(const std::vector<std::string>& args, size_t* next, Found* found) {
  // "--name='1 2'" has them all.
  if (found->has_value && absl::StrContains(found->value, ' ')) return absl::OkStatus();
  for (int i = 0; i < found->flag->extra_values; ++i) {
    if (*next == args.size() || (IsOption(args[*next]) && !IsNegativeNumber(args[*next]))) {
      return absl::InvalidArgumentError(
          absl::StrCat(found->written, " needs ", found->flag->extra_values + 1, " values"));
    }
    absl::StrAppend(&found->value, " ", args[(*next)++]);
  }
  return absl::OkStatus();
}

// One argument, so that a value that begins with '-' stays a value for the next parser.
std::string Canonical(const Found& found) {
  if (!found.flag->takes_value) return found.flag->name;
  return absl::StrCat(found.flag->name, found.flag->name.size() > 2 ? "=" : "", found.value);
}

}  // namespace

absl::StatusOr<SplitCommandLine> SplitArguments(const std::vector<FlagSpec>& flags,
                                                const std::vector<std::string>& args,
                                                const std::string& program) {
  SplitCommandLine result;
  size_t next = 0;
  while (next < args.size() && IsOption(args[next])) {
    const std::string& arg = args[next++];
    if (arg == "--") break;
    ASSIGN_OR_RETURN(Found found, Identify(flags, arg, program));
    if (!found.flag->unavailable.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(found.written, " is not available: ", found.flag->unavailable));
    }
    if (!found.flag->takes_value && found.has_value) {
      return absl::InvalidArgumentError(absl::StrCat(found.written, " takes no value"));
    }
    if (found.flag->takes_value && !found.has_value) {
      // An option in this place means that the value was forgotten.
      if (next == args.size() || (IsOption(args[next]) && !IsNegativeNumber(args[next]))) {
        return absl::InvalidArgumentError(absl::StrCat(found.written, " needs a value"));
      }
      found.value = args[next++];
    }
    // Mostly a shell variable that is not set.
    if (found.flag->takes_value && found.value.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(found.written, " needs a value, not an empty one"));
    }
    RETURN_IF_ERROR(TakeExtraValues(args, &next, &found));
    result.options.push_back(Canonical(found));
  }
  result.command.assign(args.begin() + next, args.end());
  return result;
}

}  // namespace hvd::options
