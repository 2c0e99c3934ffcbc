// The report of horovodrun --dry-run: the processes that a job would start, and their hosts. Pure.
#ifndef LAUNCHER_DRY_RUN_H_
#define LAUNCHER_DRY_RUN_H_

#include <string>

#include "launcher/cli/options.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher {

// Returns the plan's table, the placement of each rank (static jobs), the daemon's listen
// addresses, the variables set by flags and by the settings file (those of -x without their
// values), and a note on what a dry run does not check.
std::string DryRunText(const plan::JobPlan& plan, const cli::Options& options);

}  // namespace hvd::launcher

#endif  // LAUNCHER_DRY_RUN_H_
