// Slurm's host lists, as in SLURM_JOB_NODELIST: "gpu[1-3,07],login1". Pure.
#ifndef LAUNCHER_ALLOCATION_HOSTLIST_H_
#define LAUNCHER_ALLOCATION_HOSTLIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::launcher::allocation {

// The hosts' names, in the order in which `scontrol show hostnames` prints them, which is the one
// that Slurm's other variables count by. A name may have any number of brackets with numbers and
// ranges of them; a range has the width of its first number.
// Errors:
//   - InvalidArgument: not such a list, or more hosts than a job can have; says which entry.
absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view list);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_HOSTLIST_H_
