#include "options/flag_table.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvd::options {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter(std::string usage, const std::map<std::string, std::string>& single_dash)
      : usage_(std::move(usage)), single_dash_(single_dash) {
    column_width(46);
  }

  std::string make_usage(const CLI::App*, std::string) const override {
    return absl::StrCat("Usage: ", usage_, "\n");
  }

  // CLI11 knows no long option with a single dash, so Horovod's are added to its help text.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    for (const std::string& long_name : option->get_lnames()) {
      const auto found = single_dash_.find("--" + long_name);
      if (found != single_dash_.end()) return absl::StrCat(found->second, ",", name);
    }
    return name;
  }

 private:
  const std::string usage_;
  // The table's own, which is filled after this object is made.
  const std::map<std::string, std::string>& single_dash_;
};

// The flag's name in an option of SplitArguments' canonical form.
std::string NameOf(const std::string& option) {
  return absl::StartsWith(option, "--") ? option.substr(0, option.find('=')) : option.substr(0, 2);
}

}  // namespace

FlagTable::FlagTable(std::string usage, std::vector<FlagSpec> refused)
    : program_(usage.substr(0, usage.find(' '))), refused_(std::move(refused)) {
  app_.formatter(std::make_shared<HelpFormatter>(std::move(usage), single_dash_));
  app_.set_help_flag("-h,--help", "Print this text");
}

void FlagTable::Group(const std::string& heading) {
  app_.option_defaults()->group(heading);
  // The help flag is older than the first group, and belongs to it.
  if (app_.get_options().size() == 1) app_.get_help_ptr()->group(heading);
}

void FlagTable::Value(const std::string& names, const std::string& kind, const std::string& help,
                      Handler handler) {
  app_.add_option(
          names,
          [this, handler](const std::vector<std::string>& values) {
            // True also after an error, whose text would otherwise be CLI11's. Update keeps the
            // first.
            for (const std::string& value : values) status_.Update(handler(value));
            return true;
          },
          help)
      ->option_text(kind)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void FlagTable::TwoValues(const std::string& name, const std::string& kind, const std::string& help,
                          Handler handler) {
  two_values_.insert(name);
  Value(name, kind, help, std::move(handler));
}

void FlagTable::Flag(const std::string& names, const std::string& help,
                     std::function<void()> action) {
  app_.add_flag_callback(names, std::move(action), help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void FlagTable::Harmless(const std::string& names) {
  app_.add_flag_callback(
          names, [] {}, "")
      // No group: CLI11 leaves it out of the help text.
      ->group("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void FlagTable::Opposites(const std::string& name, const std::string& other) {
  opposites_.emplace_back(name, other);
}

void FlagTable::SingleDash(const std::string& name, const std::string& spelling) {
  single_dash_[name] = spelling;
}

std::string FlagTable::Help() const {
  // CLI11 puts two blank lines between groups; one is enough.
  return absl::StrReplaceAll(app_.help(), {{"\n\n\n", "\n\n"}});
}

std::vector<FlagSpec> FlagTable::Specs() const {
  std::vector<FlagSpec> specs = refused_;
  for (const CLI::Option* option : app_.get_options()) {
    FlagSpec spec;
    for (const std::string& name : option->get_lnames()) {
      spec.spellings.push_back("--" + name);
      const auto found = single_dash_.find("--" + name);
      if (found != single_dash_.end()) spec.spellings.push_back(found->second);
    }
    for (const std::string& name : option->get_snames()) spec.spellings.push_back("-" + name);
    // The first long name: opposites and defaults are compared by it.
    spec.name = spec.spellings.front();
    // 0 for flags. TwoValues has one for CLI11: the second value is joined to the first before.
    spec.takes_value = option->get_items_expected_max() > 0;
    spec.extra_values = two_values_.count(spec.name) > 0 ? 1 : 0;
    specs.push_back(std::move(spec));
  }
  return specs;
}

absl::Status FlagTable::CheckOpposites(const std::set<std::string>& given) const {
  for (const auto& [name, other] : opposites_) {
    if (given.count(name) == 0 || given.count(other) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " and ", other, " exclude each other; give one of them"));
  }
  return absl::OkStatus();
}

bool FlagTable::IsDecided(const std::string& name, const std::set<std::string>& given) const {
  if (given.count(name) > 0) return true;
  return std::any_of(opposites_.begin(), opposites_.end(), [&](const auto& pair) {
    return (pair.first == name && given.count(pair.second) > 0) ||
           (pair.second == name && given.count(pair.first) > 0);
  });
}

absl::StatusOr<FlagTable::Result> FlagTable::Parse(const std::vector<std::string>& args,
                                                   const std::vector<std::string>& defaults) {
  const std::vector<FlagSpec> specs = Specs();
  ASSIGN_OR_RETURN(SplitCommandLine split, SplitArguments(specs, args, program_));
  ASSIGN_OR_RETURN(SplitCommandLine fallback, SplitArguments(specs, defaults, program_));
  std::set<std::string> given;
  for (const std::string& option : split.options) given.insert(NameOf(option));
  RETURN_IF_ERROR(CheckOpposites(given));
  // Opposites of defaults give way, too: --no-autotune on the command line beats the file.
  for (const std::string& option : fallback.options) {
    if (!IsDecided(NameOf(option), given)) split.options.push_back(option);
  }
  Result result;
  result.command = std::move(split.command);
  // CLI11 takes the arguments in reverse order. Its exceptions are caught only here.
  try {
    app_.parse(std::vector<std::string>(split.options.rbegin(), split.options.rend()));
  } catch (const CLI::CallForHelp&) {
    // Whatever else is wrong: who asks for help needs it.
    result.help = true;
    return result;
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrJoin(
        absl::StrSplit(error.what(), absl::ByAnyChar("\r\n"), absl::SkipEmpty()), "; "));
  }
  RETURN_IF_ERROR(status_);
  return result;
}

absl::StatusOr<int64_t> ParseInteger(const std::string& flag, const std::string& text, int64_t low,
                                     int64_t high) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": '", text, "' is not a whole number"));
  }
  if (value < low) {
    return absl::InvalidArgumentError(absl::StrCat(flag, "=", value, " must be >= ", low));
  }
  if (value > high) {
    return absl::InvalidArgumentError(absl::StrCat(flag, "=", value, " must be <= ", high));
  }
  return value;
}

absl::StatusOr<absl::Duration> ParseSeconds(const std::string& flag, const std::string& text,
                                            double low, double high) {
  double seconds = 0;
  // NaN fails both comparisons.
  if (absl::SimpleAtod(text, &seconds) && seconds >= low && seconds <= high) {
    return absl::Seconds(seconds);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": '", text, "' is not a number of seconds from ", low, " to ", high));
}

}  // namespace hvd::options
