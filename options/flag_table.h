// The table of a program's flags, each with its handler. CLI11 makes the help text and calls the
// handlers; command_line.h parses Horovod's syntax of options.
#ifndef OPTIONS_FLAG_TABLE_H_
#define OPTIONS_FLAG_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "options/command_line.h"

namespace hvd::options {

// Declare all flags, then Parse once. Names are CLI11's: "-p,--ssh-port". Not thread-safe.
class FlagTable {
 public:
  using Handler = std::function<absl::Status(const std::string&)>;

  // `usage`: the text after "Usage: ", the program's name first. `refused`: flags that are known
  // but not available.
  FlagTable(std::string usage, std::vector<FlagSpec> refused);

  // The heading in the help text for the flags declared from here on.
  void Group(const std::string& heading);

  // A flag with a value; `handler` takes each value in turn.
  void Value(const std::string& names, const std::string& kind, const std::string& help,
             Handler handler);
  // A flag with two values; `handler` takes both, with a blank between.
  void TwoValues(const std::string& name, const std::string& kind, const std::string& help,
                 Handler handler);
  // A flag without a value.
  void Flag(const std::string& names, const std::string& help, std::function<void()> action);
  // A flag that asks for the default behaviour; not shown in the help text.
  void Harmless(const std::string& names);
  // Two flags of which only one may be given.
  void Opposites(const std::string& name, const std::string& other);
  // Another spelling, with a single dash, of the long flag `name`.
  void SingleDash(const std::string& name, const std::string& spelling);

  // The text above all flags in the help text.
  void Description(const std::string& text) { app_.description(text); }
  void Footer(const std::string& text) { app_.footer(text); }
  std::string Help() const;

  struct Result {
    bool help = false;
    std::vector<std::string> command;
  };
  // Parses `args` and calls the handlers. `defaults`: options that apply where `args` have neither
  // the same flag nor its opposite.
  // Errors:
  //   - InvalidArgument: as SplitArguments, or the first error of a handler.
  absl::StatusOr<Result> Parse(const std::vector<std::string>& args,
                               const std::vector<std::string>& defaults = {});

 private:
  std::vector<FlagSpec> Specs() const;
  absl::Status CheckOpposites(const std::set<std::string>& given) const;
  bool IsDecided(const std::string& name, const std::set<std::string>& given) const;

  CLI::App app_;
  const std::string program_;
  std::vector<FlagSpec> refused_;
  std::map<std::string, std::string> single_dash_;
  std::set<std::string> two_values_;
  std::vector<std::pair<std::string, std::string>> opposites_;
  absl::Status status_;
};

// A whole number between two bounds.
// Errors:
//   - InvalidArgument: not such a number; names `flag` and the value.
absl::StatusOr<int64_t> ParseInteger(const std::string& flag, const std::string& text, int64_t low,
                                     int64_t high);

// A number of seconds between two bounds, with or without a fraction.
// Errors:
//   - InvalidArgument: not such a number; names `flag` and the value.
absl::StatusOr<absl::Duration> ParseSeconds(const std::string& flag, const std::string& text,
                                            double low, double high);

}  // namespace hvd::options

#endif  // OPTIONS_FLAG_TABLE_H_
