// The parsed settings of a worker's runtime.
#ifndef BASE_SETTINGS_RUNTIME_ENV_H_
#define BASE_SETTINGS_RUNTIME_ENV_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/settings/on_corruption.h"

namespace hvd::settings {

struct AutotuneEnv {
  bool enabled = false;
  std::string log;  // a file; empty: none
  size_t warmup_samples = 3;
  size_t steps_per_sample = 10;
  size_t max_samples = 20;
  double noise = 0.8;
};

// The value of HOROVOD_TIMELINE that only permits timelines to be started at run time.
inline constexpr absl::string_view kDynamicTimeline = "DYNAMIC";

// The engine's settings, passed through to rank 0's coordinator as one struct.
struct EngineEnv {
  size_t fusion_threshold_bytes = size_t{128} << 20;  // 0: no fusion
  bool fusion_threshold_is_given = false;
  absl::Duration cycle_time;  // how long ready tensors may wait for more to fuse with
  bool cycle_time_is_given = false;
  size_t cache_capacity = 1024;       // known tensors; 0: none
  bool disable_group_fusion = false;  // a group's tensors are not fused with others
  bool stall_check = true;
  absl::Duration stall_warning_time = absl::Seconds(60);  // zero: never
  absl::Duration stall_shutdown_time;                     // zero: never
  // The core for the engine's thread, by local rank; empty: any core.
  std::vector<int> thread_affinity;
};

// The settings that a worker's runtime reads from its environment (runtime_settings.h). The initial
// values are the defaults.
struct RuntimeEnv {
  EngineEnv engine;
  absl::Duration gloo_timeout = absl::Seconds(30);
  absl::Duration agent_timeout = absl::Seconds(30);
  size_t commit_copy_mbit = 1000;  // per second and agent; 0: no copies
  OnCorruption on_corruption = OnCorruption::kWarn;
  bool shared_memory = true;  // within a host
  bool gloo = false;          // between hosts, in place of the TCP backend
  bool encrypt_data = false;  // between workers
  bool hierarchical_allreduce = true;
  bool hierarchical_allgather = true;
  bool omp_threads = true;        // the agent sets OMP_NUM_THREADS for its workers
  bool torch_env = true;          // the agent sets torchrun's variables for its workers
  bool gpu_operations = true;     // NCCL reduces tensors on CUDA devices
  bool nccl_is_only_way = false;  // no fallback to host memory if NCCL fails
  bool nccl_shares_gpus = false;  // NCCL lets ranks share a GPU
  std::string nccl_host_id;       // ranks with different ids are on different hosts to NCCL
  AutotuneEnv autotune;
  std::string timeline;  // a file, or kDynamicTimeline; empty: none
  bool timeline_mark_cycles = false;
  std::string log_level = "warning";
  bool log_hide_time = false;
  // One-line notes for the user on variables that are set but have no effect in this version.
  std::vector<std::string> notes;
  // Set by the agent; empty and 0 in a process that no agent has started.
  std::string agent_socket;
  uint64_t worker_id = 0;
  std::string worker_word;
};

}  // namespace hvd::settings

#endif  // BASE_SETTINGS_RUNTIME_ENV_H_
