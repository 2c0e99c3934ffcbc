// The choice of the launcher that reaches a job's other hosts.
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

// The launcher that the user has named. Otherwise, for hosts that a scheduler has given, the
// scheduler's own command if it is in the PATH and no option is for ssh; in all other cases ssh.
// Looks for files.
// Errors: one line.
//   - InvalidArgument: there is no such launcher, or an option for ssh was given with another one.
//   - NotFound: the identity file can't be read.
absl::StatusOr<std::shared_ptr<const spawn::HostLauncher>> ChooseLauncher(
    const cli::Options& options, const Environment& environment, const std::string& directory,
    absl::Duration agent_timeout);

}  // namespace hvd::launcher::plan

#endif  // LAUNCHER_PLAN_LAUNCHER_CHOICE_H_
