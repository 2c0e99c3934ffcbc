// A table of a program's flags and their handlers. CLI11 makes the help text and calls the
// handlers; command_line.h parses the syntax of Horovod's options.
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

  // Sets the heading in the help text for the flags that are declared after this call.
  void Group(const std::string& heading);

  // Declares a flag with a value; `handler` takes each value in turn.
  void Value(const std::string& names, const std::string& kind, const std::string& help,
             Handler handler);
  // Declares a flag with two values; `handler` takes both as one text, separated by a blank.
  void TwoValues(const std::string& name, const std::string& kind, const std::string& help,
                 Handler handler);
  // Declares a flag without a value.
  void Flag(const std::string& names, const std::string& help, std::function<void()> action);
  // Declares a flag without an effect, which requests the default behaviour; not in the help text.
  void Harmless(const std::string& names);
  // Declares two flags to be mutually exclusive.
  void Opposites(const std::string& name, const std::string& other);
  // Declares another spelling of the long flag `name`, with a single dash.
  void SingleDash(const std::string& name, const std::string& spelling);

  // Sets the text above all flags in the help text.
  void Description(const std::string& text) { app_.description(text); }
  void Footer(const std::string& text) { app_.footer(text); }
  std::string Help() const;

  struct Result {
    bool help = false;
    std::vector<std::string> command;
  };
  // Parses `args` and calls the handlers. `defaults` are options that apply if `args` contain
  // neither the same flag nor its opposite.
  // Errors:
  //   - InvalidArgument: an error of SplitArguments, or the first error of a handler.
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

// Parses a whole number in [low, high].
// Errors:
//   - InvalidArgument: not such a number; names `flag` and the value.
absl::StatusOr<int64_t> ParseInteger(const std::string& flag, const std::string& text, int64_t low,
                                     int64_t high);

// Parses a number of seconds in [low, high], with or without a fraction.
// Errors:
//   - InvalidArgument: not such a number; names `flag` and the value.
absl::StatusOr<absl::Duration> ParseSeconds(const std::string& flag, const std::string& text,
                                            double low, double high);

}  // namespace hvd::options

#endif  // OPTIONS_FLAG_TABLE_H_
