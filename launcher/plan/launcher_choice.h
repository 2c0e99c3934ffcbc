// The selection of the HostLauncher for a job's remote hosts.
#ifndef LAUNCHER_PLAN_LAUNCHER_CHOICE_H_
#define LAUNCHER_PLAN_LAUNCHER_CHOICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "launcher/cli/options.h"
#include "launcher/spawn/host_launcher.h"

namespace hvd::launcher::plan {

// Returns the launcher that the user has named. Without one: for hosts of an allocation, the
// scheduler's command if it is in the PATH and no ssh option was given; in all other cases ssh.
// Searches the file system.
// Errors: one line.
//   - InvalidArgument: there is no such launcher, or an ssh option was given with another launcher.
//   - NotFound: the identity file can't be read.
absl::StatusOr<std::shared_ptr<const spawn::HostLauncher>> ChooseLauncher(
    const cli::Options& options, const Environment& environment, const std::string& directory,
    absl::Duration agent_timeout);

}  // namespace hvd::launcher::plan

#endif  // LAUNCHER_PLAN_LAUNCHER_CHOICE_H_
