// The environment that workers start with. Pure.
#ifndef LAUNCHER_CLI_ENVIRONMENT_H_
#define LAUNCHER_CLI_ENVIRONMENT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"

namespace hvd::launcher::cli {

using Assignment = std::pair<std::string, std::string>;  // variable, value

// What `-x` was given: "NAME=VALUE", or "NAME" for the launcher's own value.
//   InvalidArgument: NAME can't be a variable's name, or the launcher has no such variable.
absl::StatusOr<Assignment> ParseExport(const std::string& text, const Environment& launcher);

// The launcher's environment without what belongs to one process or host only, then what every
// worker gets, then `tunables`, then `exports`; later ones win. The agent adds rank and size.
Environment WorkerEnvironment(const Environment& launcher, const std::vector<Assignment>& tunables,
                              const std::vector<Assignment>& exports);

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_ENVIRONMENT_H_
