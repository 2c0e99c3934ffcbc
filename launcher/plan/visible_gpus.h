// The number of NVIDIA GPUs that a process on this machine can see.
#ifndef LAUNCHER_PLAN_VISIBLE_GPUS_H_
#define LAUNCHER_PLAN_VISIBLE_GPUS_H_

#include <optional>
#include <string>

namespace hvd::launcher::plan {

// Counts the GPUs by their device files, without the driver's library: "nvidia0", "nvidia1", ... in
// `folder`. `visible` is the value of CUDA_VISIBLE_DEVICES, whose entries count up to the first
// that is invalid, as for CUDA; nullopt: all. Thread-safe.
int VisibleGpus(const std::optional<std::string>& visible, const std::string& folder = "/dev");

}  // namespace hvd::launcher::plan

#endif  // LAUNCHER_PLAN_VISIBLE_GPUS_H_
