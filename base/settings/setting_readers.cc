#include "base/settings/setting_readers.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/settings/on_corruption.h"

namespace hvd::settings {
namespace {

// No time that anybody waits, and far from what a duration's arithmetic could overflow.
constexpr double kLongestTime = 1e9;

Problem ReadCount(const std::string& text, size_t* out) {
  uint64_t value;
  if (!absl::SimpleAtoi(text, &value)) return "a whole number, 0 or larger";
  *out = value;
  return "";
}

Problem ReadTime(const std::string& text, absl::Duration unit, absl::Duration* out) {
  double value;
  // Written so that NaN, for which no comparison holds, is refused.
  if (!absl::SimpleAtod(text, &value) || !(value >= 0)) return "a number, 0 or larger";
  if (value > kLongestTime) return "at most 1000000000";
  *out = value * unit;
  return "";
}

Problem ReadSwitch(const std::string& text, bool* out) {
  if (text != "0" && text != "1") return "0 or 1";
  *out = text == "1";
  return "";
}

}  // namespace

Read Count(Field<size_t> field) {
  return [field](const std::string& text, RuntimeEnv* env) {
    return ReadCount(text, &field.In(*env));
  };
}

Read CountFromOne(Field<size_t> field) {
  return [field](const std::string& text, RuntimeEnv* env) {
    size_t& value = field.In(*env);
    const Problem problem = ReadCount(text, &value);
    return problem.empty() && value > 0 && value <= 1000000 ? ""
                                                            : "a whole number from 1 to 1000000";
  };
}

Read Seconds(Field<absl::Duration> field) {
  return [field](const std::string& text, RuntimeEnv* env) {
    return ReadTime(text, absl::Seconds(1), &field.In(*env));
  };
}

Read Switch(Field<bool> field) {
  return [field](const std::string& text, RuntimeEnv* env) {
    return ReadSwitch(text, &field.In(*env));
  };
}

Read Text(Field<std::string> field) {
  return [field](const std::string& text, RuntimeEnv* env) {
    field.In(*env) = text;
    return Problem();
  };
}

Problem ReadFusionThreshold(const std::string& text, RuntimeEnv* env) {
  // Autotuning leaves alone what the user has set; the same for the cycle time.
  env->engine.fusion_threshold_is_given = true;
  return ReadCount(text, &env->engine.fusion_threshold_bytes);
}

Problem ReadCycleTime(const std::string& text, RuntimeEnv* env) {
  env->engine.cycle_time_is_given = true;
  return ReadTime(text, absl::Milliseconds(1), &env->engine.cycle_time);
}

Problem ReadTorus(const std::string& text, RuntimeEnv* env) {
  bool torus = false;
  Problem problem = ReadSwitch(text, &torus);
  // Its row comes after that of HOROVOD_HIERARCHICAL_ALLREDUCE: 1 wins over a 0 there, 0 changes
  // nothing.
  env->hierarchical_allreduce |= torus;
  return problem;
}

Problem ReadNoise(const std::string& text, RuntimeEnv* env) {
  double& noise = env->autotune.noise;
  const bool good = absl::SimpleAtod(text, &noise) && noise >= 0 && noise <= 1;
  return good ? "" : "a number from 0 to 1";
}

Problem ReadNoStallCheck(const std::string& text, RuntimeEnv* env) {
  bool disable = false;
  Problem problem = ReadSwitch(text, &disable);
  env->engine.stall_check = !disable;
  return problem;
}

Problem ReadGlooTimeout(const std::string& text, RuntimeEnv* env) {
  Problem problem = ReadTime(text, absl::Seconds(1), &env->gloo_timeout);
  // With 0 every wait would have failed before it began.
  return problem.empty() && env->gloo_timeout == absl::ZeroDuration() ? "larger than 0" : problem;
}

Problem ReadAgentTimeout(const std::string& text, RuntimeEnv* env) {
  Problem problem = ReadTime(text, absl::Seconds(1), &env->agent_timeout);
  return problem.empty() && env->agent_timeout < absl::Seconds(1) ? "at least 1" : problem;
}

Problem ReadCores(const std::string& text, RuntimeEnv* env) {
  std::vector<int> cores;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int core;
    if (!absl::SimpleAtoi(part, &core) || core < 0) return "core numbers separated by commas";
    cores.push_back(core);
  }
  env->engine.thread_affinity = std::move(cores);
  return "";
}

Problem ReadLogLevel(const std::string& text, RuntimeEnv* env) {
  const std::string level = absl::AsciiStrToLower(text);
  for (const char* known : {"trace", "debug", "info", "warning", "error", "fatal"}) {
    if (level == known) {
      env->log_level = level;
      return "";
    }
  }
  return "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL";
}

Problem ReadCpuOperations(const std::string& text, RuntimeEnv* env) {
  const std::string library = absl::AsciiStrToUpper(text);
  env->gloo = library == "GLOO";
  if (env->gloo || library == "TCP") return "";
  // Horovod's other libraries are accepted, so that its environments work unchanged.
  if (library != "MPI" && library != "CCL") return "TCP or GLOO";
  env->notes.push_back(absl::StrCat("HOROVOD_CPU_OPERATIONS=", text,
                                    " means TCP: this version has no MPI and no oneCCL"));
  return "";
}

Problem ReadGpuOperations(const std::string& text, RuntimeEnv* env) {
  const std::string library = absl::AsciiStrToUpper(text);
  env->nccl_is_only_way = library == "NCCL_ONLY";
  env->gpu_operations = library == "NCCL" || env->nccl_is_only_way;
  // Horovod's other libraries are accepted, and mean reduction in host memory, as in a build of
  // Horovod without GPU operations.
  for (const char* known : {"NCCL", "NCCL_ONLY", "HOST", "MPI", "CCL", "DDL"}) {
    if (library == known) return "";
  }
  return "NCCL, NCCL_ONLY or HOST";
}

Problem ReadOnCorruption(const std::string& text, RuntimeEnv* env) {
  const std::optional<OnCorruption> chosen = OnCorruptionOf(absl::AsciiStrToLower(text));
  if (!chosen.has_value()) return "warn, evict, end or off";
  env->on_corruption = *chosen;
  return "";
}

Problem ReadSharedGpus(const std::string& text, RuntimeEnv* env) {
  // NCCL's own variable. What it makes of other values is not ours to refuse.
  env->nccl_shares_gpus = text == "1";
  return "";
}

Problem ReadWorkerId(const std::string& text, RuntimeEnv* env) {
  return absl::SimpleAtoi(text, &env->worker_id) ? "" : "a whole number";
}

}  // namespace hvd::settings
