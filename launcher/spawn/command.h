// Shell quoting of commands. Commands are lists of arguments; only ssh takes one text, for the
// remote shell.
#ifndef LAUNCHER_SPAWN_COMMAND_H_
#define LAUNCHER_SPAWN_COMMAND_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvd::launcher::spawn {

// `argument` as one word of a POSIX shell, unchanged if it needs no quoting. REQUIRES: it has no
// zero byte.
std::string ShellQuote(absl::string_view argument);

// The text that a shell splits into exactly these arguments.
std::string ShellJoin(const std::vector<std::string>& arguments);

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_COMMAND_H_
