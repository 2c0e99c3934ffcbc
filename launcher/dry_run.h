// horovodrun --dry-run: what would be started where. Pure.
#ifndef LAUNCHER_DRY_RUN_H_
#define LAUNCHER_DRY_RUN_H_

#include <string>

#include "launcher/cli/options.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher {

// The plan's table, the place of each rank (static jobs), where the daemon would listen, the
// variables that flags and the file of settings stand for (those of -x without their values), and
// what has not been checked.
std::string DryRunText(const plan::JobPlan& plan, const cli::Options& options);

}  // namespace hvd::launcher

#endif  // LAUNCHER_DRY_RUN_H_
