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

// Those variables of RuntimeEnvTable() that are set. For libraries too: it asks by name, since
// `environ` itself is another, empty variable to a library that was loaded with RTLD_DEEPBIND into
// a program that holds a copy of it.
Environment ReadRuntimeVariables();

// What a worker's runtime reads from its environment; the defaults are those of a process without
// any of it.
struct RuntimeEnv {
  size_t fusion_threshold_bytes = size_t{128} << 20;
  absl::Duration cycle_time;
  size_t cache_capacity = 1024;
  absl::Duration gloo_timeout = absl::Seconds(30);
  bool stall_check = true;
  absl::Duration stall_warning_time = absl::Seconds(60);
  absl::Duration stall_shutdown_time;  // zero: never
  std::vector<int> thread_affinity;
  std::string log_level = "warning";
  bool log_hide_time = false;
  // From the agent; empty and 0 in a process that was started by hand.
  std::string agent_socket;
  uint64_t worker_id = 0;
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

}  // namespace hvd

#endif  // BASE_ENV_H_
