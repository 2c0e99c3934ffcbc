// A parser that splits a command line into options, in a canonical spelling, and the user's
// command. It implements the syntax of Horovod's command line (argparse) and does not know the
// meaning of the options. Pure.
#ifndef OPTIONS_COMMAND_LINE_H_
#define OPTIONS_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::options {

struct FlagSpec {
  std::string name;                    // canonical: "--num-proc", "-x"
  std::vector<std::string> spellings;  // every accepted spelling, `name` included
  bool takes_value = false;
  std::string unavailable;  // not empty: the flag is refused with this text
  int extra_values = 0;     // the number of values after the first; joined by blanks
  // Neither an abbreviation nor a misspelling means this flag, only its spellings themselves.
  bool exact = false;
};

struct SplitCommandLine {
  std::vector<std::string> options;  // "--name=value", "--name", "-xvalue"
  std::vector<std::string> command;  // all arguments from the first non-option on
};

// Accepts "--name value", "--name=value", "-np 2", "-p22", and unambiguous prefixes of long
// options. "--" ends the options. `program` is the name in messages that refer to --help.
// Errors: one line.
//   - InvalidArgument: an unknown (with a suggestion), ambiguous or refused option, or a value that
//     is missing, empty or unexpected.
absl::StatusOr<SplitCommandLine> SplitArguments(const std::vector<FlagSpec>& flags,
                                                const std::vector<std::string>& args,
                                                const std::string& program);

}  // namespace hvd::options

#endif  // OPTIONS_COMMAND_LINE_H_
