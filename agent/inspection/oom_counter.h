// A counter of the kernel's out-of-memory kills.
#ifndef AGENT_INSPECTION_OOM_COUNTER_H_
#define AGENT_INSPECTION_OOM_COUNTER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hvd::agent::inspection {

// Counts the kernel's OOM kills in one cgroup (version 2) and its descendants, or in the whole
// system if the cgroup has no such counter.
class OomCounter {
 public:
  // Reads the counter of the cgroup to which process `pid` belongs now. `root` is the directory
  // that contains /proc and /sys, for tests.
  explicit OomCounter(pid_t pid, const std::string& root = "");

  // Whether the counter has grown since this object was made.
  bool HasGrown() const;

 private:
  std::string file_;  // empty: no counter can be read
  uint64_t start_ = 0;
};

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_OOM_COUNTER_H_
