// The number of CPU cores that this process and its children may use, and a worker's share.
#ifndef BASE_OS_USABLE_CORES_H_
#define BASE_OS_USABLE_CORES_H_

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::os {

// Returns the minimum of the process's CPU affinity and the CPU quotas of its cgroups, at least 1.
// A quota of 2.5 cores counts as 2, because three threads would be throttled. Thread-safe.
int UsableCores();

// Whether UsableCores is less than the machine's number of cores, the rest of which others may use.
// Thread-safe.
bool HasShareOfCores();

// Returns the smallest CPU quota, in cores, of the cgroups in `own_groups` (the contents of
// /proc/PID/cgroup) and their ancestors, versions 1 and 2, whose files are below `root`. 0: no
// quota. Thread-safe.
int CoresOfQuota(const std::string& root, absl::string_view own_groups);

// Returns one worker's number of threads if `workers` share `cores`.
inline int ThreadsOfWorker(int cores, int workers) {
  return std::max(1, cores / std::max(1, workers));
}

}  // namespace hvd::os

#endif  // BASE_OS_USABLE_CORES_H_
