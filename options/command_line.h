// Cuts a program's arguments into options, in one canonical spelling, and the user's command.
// Knows how Horovod's command line is written (argparse), not what the options mean. Pure.
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
  std::string unavailable;  // not empty: known, but refused with this text
  int extra_values = 0;     // after the first; joined by blanks
};

struct SplitCommandLine {
  std::vector<std::string> options;  // "--name=value", "--name", "-xvalue"
  std::vector<std::string> command;  // from the first argument that is no option
};

// Accepts "--name value", "--name=value", "-np 2", "-p22", and long options shortened to an
// unambiguous beginning. "--" ends the options.
// `program` is named where its --help would help.
//   InvalidArgument: unknown (with a suggestion), ambiguous or refused option, or a value that is
//   missing, empty or not wanted. One line.
absl::StatusOr<SplitCommandLine> SplitArguments(const std::vector<FlagSpec>& flags,
                                                const std::vector<std::string>& args,
                                                const std::string& program);

// Smallest number of insertions, deletions and replacements that turn `a` into `b`.
int EditDistance(absl::string_view a, absl::string_view b);

}  // namespace hvd::options

#endif  // OPTIONS_COMMAND_LINE_H_
