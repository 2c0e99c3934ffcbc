// The number of cores that this process and its children may use, and each worker's share of them.
#ifndef BASE_OS_USABLE_CORES_H_
#define BASE_OS_USABLE_CORES_H_

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::os {

// At least 1, and at most what the process's affinity and the CPU quotas of its cgroups allow. A
// quota of 2.5 cores counts as 2: three threads would be paused by it. Thread-safe.
int UsableCores();

// Whether those are fewer than the machine has: others may have the rest. Thread-safe.
bool HasShareOfCores();

// The smallest quota of the cgroups that /proc/PID/cgroup names (`own_groups`) and of their
// ancestors, versions 1 and 2, whose files are below `root`. 0: no quota. Thread-safe.
int CoresOfQuota(const std::string& root, absl::string_view own_groups);

// The share of one of `workers` that share `cores`.
inline int ThreadsOfWorker(int cores, int workers) {
  return std::max(1, cores / std::max(1, workers));
}

}  // namespace hvd::os

#endif  // BASE_OS_USABLE_CORES_H_
