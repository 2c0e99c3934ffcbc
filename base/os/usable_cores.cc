#include "base/os/usable_cores.h"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvd::os {
namespace {

constexpr char kCgroups[] = "/sys/fs/cgroup";
constexpr int kMostCores = 1 << 16;

std::string ReadWhole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The number of cores in the main thread's affinity mask. sched_getaffinity fails if the buffer is
// smaller than the kernel's masks, so the size is doubled until it succeeds.
int CoresOfAffinity() {
  for (int size = 1024; size <= kMostCores; size *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(size), [](cpu_set_t* set) { CPU_FREE(set); });
    if (sched_getaffinity(getpid(), CPU_ALLOC_SIZE(size), mask.get()) == 0) {
      return CPU_COUNT_S(CPU_ALLOC_SIZE(size), mask.get());
    }
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// "200000 100000" -> 2; 0: no limit.
int CoresOf(absl::string_view quota, absl::string_view period) {
  int64_t time = 0, of = 0;
  if (!absl::SimpleAtoi(quota, &time) || !absl::SimpleAtoi(period, &of) || time <= 0 || of <= 0) {
    return 0;
  }
  return static_cast<int>(std::clamp<int64_t>(time / of, 1, kMostCores));
}

int CoresOfGroup(const std::string& folder) {
  const std::vector<std::string> unified =
      absl::StrSplit(ReadWhole(absl::StrCat(folder, "/cpu.max")), absl::ByAnyChar(" \n"));
  if (unified.size() >= 2) return CoresOf(unified[0], unified[1]);
  return CoresOf(ReadWhole(absl::StrCat(folder, "/cpu.cfs_quota_us")),
                 ReadWhole(absl::StrCat(folder, "/cpu.cfs_period_us")));
}

// The smallest quota of a group and its ancestors; 0: none. Inside containers the path may refer to
// the host's hierarchy and not exist; then `top` itself is the container's group, and its quota
// counts.
int LeastUpwards(const std::string& top, std::string group) {
  int least = 0;
  while (true) {
    const int cores = CoresOfGroup(absl::StrCat(top, group));
    if (cores > 0 && (least == 0 || cores < least)) least = cores;
    if (group.empty()) return least;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

int CoresOfQuota(const std::string& root, absl::string_view own_groups) {
  int least = 0;
  for (const absl::string_view line : absl::StrSplit(own_groups, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    const bool unified = fields[1].empty();
    if (!unified && std::count(controllers.begin(), controllers.end(), "cpu") == 0) continue;
    const int cores = LeastUpwards(unified ? root : absl::StrCat(root, "/", fields[1]), fields[2]);
    if (cores > 0 && (least == 0 || cores < least)) least = cores;
  }
  return least;
}

bool HasShareOfCores() { return UsableCores() < sysconf(_SC_NPROCESSORS_ONLN); }

int UsableCores() {
  const int allowed = std::max(1, CoresOfAffinity());
  const int quota = CoresOfQuota(kCgroups, ReadWhole("/proc/self/cgroup"));
  return quota > 0 ? std::min(allowed, quota) : allowed;
}

}  // namespace hvd::os
