// Data-driven tests: tests as text files. A file is a list of blocks: commands, one a line; a line
// of four dashes; the output, up to an empty line. Lines that begin with '#' before a command are
// comments.
//
//     # Both hosts must be there.
//     join-host a
//     join-host b
//     ----
//     start worker 1 on a
//
// --rewrite replaces the files' output by the real output of the commands; read the diff.
#ifndef TESTS_SUPPORT_DATADRIVEN_H_
#define TESTS_SUPPORT_DATADRIVEN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd {

// One command: `exit 3 code=1 tail="two words" core`. Words with '=' are named arguments, others
// are positional. A command reads its arguments by type; error() reports the first argument that is
// missing, malformed or never read.
class Command {
 public:
  // Errors:
  //   - InvalidArgument: a quote is not closed, or an argument is given twice.
  static absl::StatusOr<Command> Parse(absl::string_view line);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& positional() const { return positional_; }

  // The named argument, or the default. Malformed numbers and durations give the default and an
  // error().
  std::string Text(const std::string& name, const std::string& by_default = "");
  int64_t Number(const std::string& name, int64_t by_default = 0);
  absl::Duration Time(const std::string& name, absl::Duration by_default);
  // Whether the positional word is there.
  bool Has(absl::string_view word) const;
  bool IsGiven(const std::string& name) const { return named_.count(name) > 0; }

  // Empty if everything that was read was well-formed and every named argument was read.
  std::string error() const;

 private:
  std::string name_;
  std::vector<std::string> positional_;
  std::map<std::string, std::string> named_;
  std::map<std::string, bool> asked_;
  std::string error_;
};

// Runs one command and returns what it prints; a missing newline at its end is added.
using CommandHandler = std::function<std::string(Command&)>;

// Runs the text of a file and returns it with the real output. Output must have no empty lines. A
// line that is not a command shows as an error in the output.
std::string RunScript(const std::string& text, const CommandHandler& handler);

// A main(): registers and runs one test per file named in the arguments, each with a new handler,
// and compares the output or (with --rewrite) rewrites it.
int DataDrivenMain(int argc, char** argv, const std::function<CommandHandler()>& new_handler);

}  // namespace hvd

#endif  // TESTS_SUPPORT_DATADRIVEN_H_
