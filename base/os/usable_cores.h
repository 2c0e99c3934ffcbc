// The cores that this process and its children may keep busy, and each one's share of them.
#ifndef BASE_OS_USABLE_CORES_H_
#define BASE_OS_USABLE_CORES_H_

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::os {

// At least 1: no more than its affinity and the CPU quotas of its cgroups allow. A quota of 2.5
// cores counts as 2: what it has beyond, three threads could not use without being paused.
// Thread-safe.
int UsableCores();

// The quota of the cgroups that /proc/PID/cgroup names (`own_groups`), versions 1 and 2, whose
// files are below `root`; the least of all that they are in. 0: there is none. Thread-safe.
int CoresOfQuota(const std::string& root, absl::string_view own_groups);

// For one of `workers` that share `cores`.
inline int ThreadsOfWorker(int cores, int workers) {
  return std::max(1, cores / std::max(1, workers));
}

}  // namespace hvd::os

#endif  // BASE_OS_USABLE_CORES_H_
