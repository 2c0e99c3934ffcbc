// The reader of a Slurm job's allocation, from the variables that Slurm sets. Pure.
#ifndef LAUNCHER_ALLOCATION_SLURM_ALLOCATION_H_
#define LAUNCHER_ALLOCATION_SLURM_ALLOCATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/env.h"
#include "launcher/allocation/allocation.h"

namespace hvd::launcher::allocation {

// Parses a list with a number for each node, as in SLURM_TASKS_PER_NODE: "2(x3),1" is 2, 2, 2, 1.
// Errors:
//   - InvalidArgument: not of this form.
absl::StatusOr<std::vector<int>> ParseNodeCounts(absl::string_view text);

// Returns the job's nodes and their slots: one slot per task if the user has requested tasks, else
// one per GPU, else one per node. If there is a single task on a node with several GPUs, that task
// is assumed to be this launcher, and the slots are the GPUs.
// REQUIRES: SLURM_JOB_NODELIST or SLURM_HET_SIZE is set.
// Errors: one line with the remedy.
//   - InvalidArgument: this process is one of several tasks that srun has started; a variable is
//     missing or malformed; the number of GPUs of a node is unknown; or the job is heterogeneous.
absl::StatusOr<Allocation> ReadSlurmAllocation(const Environment& environment);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_SLURM_ALLOCATION_H_
