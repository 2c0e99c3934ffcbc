// The expansion of Slurm's host list expressions, as in SLURM_JOB_NODELIST: "gpu[1-3,07],login1".
// Pure.
#ifndef LAUNCHER_ALLOCATION_HOSTLIST_H_
#define LAUNCHER_ALLOCATION_HOSTLIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::launcher::allocation {

// Returns the host names in the order of `scontrol show hostnames`, to which the indices in Slurm's
// other variables refer. A name may have any number of bracket groups, each with numbers and
// ranges; the numbers of a range are zero-padded to the width of its first number.
// Errors:
//   - InvalidArgument: a malformed entry, or more hosts than a job can have; names the entry.
absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view list);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_HOSTLIST_H_
