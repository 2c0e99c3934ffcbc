// Whether the kernel killed a process for want of memory.
#ifndef AGENT_INSPECTION_OOM_COUNTER_H_
#define AGENT_INSPECTION_OOM_COUNTER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hvd::agent::inspection {

// How many processes the kernel has killed for want of memory in one cgroup (version 2) and below;
// where the cgroup has no such counter, in the whole system.
class OomCounter {
 public:
  // Of the cgroup that process `pid` is in now. `root` is where /proc and /sys are; tests give
  // another.
  explicit OomCounter(pid_t pid, const std::string& root = "");

  // Whether it has grown since this object was made.
  bool HasGrown() const;

 private:
  std::string file_;  // empty: none can be read
  uint64_t start_ = 0;
};

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_OOM_COUNTER_H_
