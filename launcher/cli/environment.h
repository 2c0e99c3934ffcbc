// The environment of a job's workers. Pure.
#ifndef LAUNCHER_CLI_ENVIRONMENT_H_
#define LAUNCHER_CLI_ENVIRONMENT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"

namespace hvd::launcher::cli {

using Assignment = std::pair<std::string, std::string>;  // variable, value

// Parses the value of `-x`: "NAME=VALUE", or "NAME" for the launcher's own value.
// Errors:
//   - InvalidArgument: NAME can't be a variable's name, or the launcher has no such variable.
absl::StatusOr<Assignment> ParseExport(const std::string& text, const Environment& launcher);

// The launcher's environment without the variables of one process or host only, then the variables
// of every worker, then `tunables`, then `exports`; later ones win. The agent adds rank and size.
Environment WorkerEnvironment(const Environment& launcher, const std::vector<Assignment>& tunables,
                              const std::vector<Assignment>& exports);

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_ENVIRONMENT_H_
