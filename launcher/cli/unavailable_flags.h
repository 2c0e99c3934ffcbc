// The list of Horovod's flags for features that this version does not have. They are recognised so
// that the refusal can name an alternative.
#ifndef LAUNCHER_CLI_UNAVAILABLE_FLAGS_H_
#define LAUNCHER_CLI_UNAVAILABLE_FLAGS_H_

#include <vector>

#include "options/command_line.h"

namespace hvd::launcher::cli {

const std::vector<options::FlagSpec>& UnavailableFlags();

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_UNAVAILABLE_FLAGS_H_
