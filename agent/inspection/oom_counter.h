// A counter of the kernel's out-of-memory kills.
#ifndef AGENT_INSPECTION_OOM_COUNTER_H_
#define AGENT_INSPECTION_OOM_COUNTER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hvd::agent::inspection {

// The number of processes that the kernel has killed for lack of memory in one cgroup (version 2)
// and below; where the cgroup has no such counter, in the whole system.
class OomCounter {
 public:
  // Reads the counter of the cgroup that process `pid` is in now. `root` is where /proc and /sys
  // are; tests give another.
  explicit OomCounter(pid_t pid, const std::string& root = "");

  // Whether the counter has grown since this object was made.
  bool HasGrown() const;

 private:
  std::string file_;  // empty: no counter can be read
  uint64_t start_ = 0;
};

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_OOM_COUNTER_H_
