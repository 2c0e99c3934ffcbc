// The values of a runtime's settings.
#ifndef BASE_SETTINGS_RUNTIME_ENV_H_
#define BASE_SETTINGS_RUNTIME_ENV_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::settings {

struct AutotuneEnv {
  bool enabled = false;
  std::string log;  // a file; empty: none
  size_t warmup_samples = 3;
  size_t steps_per_sample = 10;
  size_t max_samples = 20;
  double noise = 0.8;
};

// The value of HOROVOD_TIMELINE that only allows timelines to be started at run time.
inline constexpr absl::string_view kDynamicTimeline = "DYNAMIC";

// What a worker's runtime reads from its environment (runtime_settings.h). The defaults are those
// of a process without any of it.
struct RuntimeEnv {
  size_t fusion_threshold_bytes = size_t{128} << 20;
  bool fusion_threshold_is_given = false;
  absl::Duration cycle_time;
  bool cycle_time_is_given = false;
  size_t cache_capacity = 1024;
  bool disable_group_fusion = false;
  absl::Duration gloo_timeout = absl::Seconds(30);
  absl::Duration agent_timeout = absl::Seconds(30);
  bool shared_memory = true;  // in a host
  bool encrypt_data = false;  // between workers
  bool hierarchical_allreduce = true;
  bool hierarchical_allgather = true;
  bool stall_check = true;
  absl::Duration stall_warning_time = absl::Seconds(60);
  absl::Duration stall_shutdown_time;  // zero: never
  std::vector<int> thread_affinity;
  bool omp_threads = true;        // the agent sets OMP_NUM_THREADS for its workers
  bool gpu_operations = true;     // tensors on CUDA devices are for NCCL
  bool nccl_is_only_way = false;  // where it fails, they don't go through host memory
  bool nccl_shares_gpus = false;  // NCCL is told that ranks may share a GPU
  std::string nccl_host_id;       // by which NCCL takes ranks for those of different hosts
  AutotuneEnv autotune;
  std::string timeline;  // a file, or kDynamicTimeline; empty: none
  bool timeline_mark_cycles = false;
  std::string log_level = "warning";
  bool log_hide_time = false;
  // What the user should know about variables that are set but have no meaning here, a line each.
  std::vector<std::string> notes;
  // From the agent; empty and 0 in a process that was started by hand.
  std::string agent_socket;
  uint64_t worker_id = 0;
  std::string worker_word;
};

}  // namespace hvd::settings

#endif  // BASE_SETTINGS_RUNTIME_ENV_H_
