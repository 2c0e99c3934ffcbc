// The hosts of a Slurm job, by the variables that Slurm sets. Pure.
#ifndef LAUNCHER_ALLOCATION_SLURM_ALLOCATION_H_
#define LAUNCHER_ALLOCATION_SLURM_ALLOCATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/env.h"
#include "launcher/allocation/allocation.h"

namespace hvd::launcher::allocation {

// A number for each node, as in SLURM_TASKS_PER_NODE: "2(x3),1" is 2, 2, 2, 1.
// Errors:
//   - InvalidArgument: not of this form.
absl::StatusOr<std::vector<int>> ParseNodeCounts(absl::string_view text);

// The nodes of the job, with a slot for each task if the user has asked for tasks, else for each
// GPU, else one. A single task on a node with several GPUs is taken for one that starts others: the
// GPUs count.
// REQUIRES: SLURM_JOB_NODELIST or SLURM_HET_SIZE is set.
// Errors: one line with the remedy.
//   - InvalidArgument: this is one of several tasks that srun has started; a variable is missing or
//     broken; nobody knows how many GPUs each node has; the job has several components.
absl::StatusOr<Allocation> ReadSlurmAllocation(const Environment& environment);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_SLURM_ALLOCATION_H_
