// The only door to the process's environment, and the table of variables that the runtime
// understands.
#ifndef BASE_ENV_H_
#define BASE_ENV_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd {

using Environment = std::map<std::string, std::string>;

// A copy of the process's environment. Not safe while another thread changes it.
Environment ReadEnvironment();

// Those variables of RuntimeEnvTable(), and of MeaninglessVariables(), that are set. For libraries
// too: it asks by name, since `environ` itself is another, empty variable to a library that was
// loaded with RTLD_DEEPBIND into a program that holds a copy of it.
Environment ReadRuntimeVariables();

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

// What a worker's runtime reads from its environment; the defaults are those of a process without
// any of it.
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

// Reads the table's variables out of `environment`.
//   InvalidArgument: a value that is not what the variable takes; names the variable, the value and
//   what would be right.
absl::StatusOr<RuntimeEnv> ParseRuntimeEnv(const Environment& environment);

// One row a variable: name, default and meaning, for help texts.
struct EnvVariable {
  absl::string_view name;
  absl::string_view default_value;
  absl::string_view meaning;
};
const std::vector<EnvVariable>& RuntimeEnvTable();

// Variables of Horovod's runtime that have no meaning here.
struct MeaninglessVariable {
  absl::string_view name;
  absl::string_view neutral_value;  // goes without saying
  absl::string_view reason;
};
const std::vector<MeaninglessVariable>& MeaninglessVariables();

}  // namespace hvd

#endif  // BASE_ENV_H_
