#include "launcher/cli/config_file.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "options/command_line.h"

namespace hvd::launcher::cli {
namespace {

enum class Type { kText, kNumber, kSwitch };

struct Key {
  absl::string_view name;
  Type type;
  absl::string_view flag;      // a switch: if it is true
  absl::string_view off = {};  // a switch: if it is false
};

constexpr char kController[] = "controller";

// Horovod's keys, and a few for what it does not have. All others are mistakes.
constexpr Key kKeys[] = {
    {kController, Type::kText, ""},
    {"params.fusion_threshold_mb", Type::kNumber, "--fusion-threshold-mb"},
    {"params.cycle_time_ms", Type::kNumber, "--cycle-time-ms"},
    {"params.cache_capacity", Type::kNumber, "--cache-capacity"},
    {"params.hierarchical_allreduce", Type::kSwitch, "--hierarchical-allreduce",
     "--no-hierarchical-allreduce"},
    {"params.hierarchical_allgather", Type::kSwitch, "--hierarchical-allgather",
     "--no-hierarchical-allgather"},
    {"params.torus_allreduce", Type::kSwitch, "--torus-allreduce", "--no-torus-allreduce"},
    {"autotune.enabled", Type::kSwitch, "--autotune", "--no-autotune"},
    {"autotune.log_file", Type::kText, "--autotune-log-file"},
    {"autotune.warmup_samples", Type::kNumber, "--autotune-warmup-samples"},
    {"autotune.steps_per_sample", Type::kNumber, "--autotune-steps-per-sample"},
    {"autotune.bayes_opt_max_samples", Type::kNumber, "--autotune-bayes-opt-max-samples"},
    {"autotune.gaussian_process_noise", Type::kNumber, "--autotune-gaussian-process-noise"},
    {"timeline.filename", Type::kText, "--timeline-filename"},
    {"timeline.mark_cycles", Type::kSwitch, "--timeline-mark-cycles", "--no-timeline-mark-cycles"},
    {"stall_check.enabled", Type::kSwitch, "--stall-check", "--no-stall-check"},
    {"stall_check.warning_time_seconds", Type::kNumber, "--stall-check-warning-time-seconds"},
    {"stall_check.shutdown_time_seconds", Type::kNumber, "--stall-check-shutdown-time-seconds"},
    {"library_options.mpi_threads_disable", Type::kSwitch, "--mpi-threads-disable",
     "--no-mpi-threads-disable"},
    {"library_options.num_nccl_streams", Type::kNumber, "--num-nccl-streams"},
    {"library_options.thread_affinity", Type::kNumber, "--thread-affinity"},
    {"library_options.encrypt_data", Type::kSwitch, "--encrypt-data", "--no-encrypt-data"},
    {"library_options.gloo_timeout_seconds", Type::kNumber, "--gloo-timeout-seconds"},
    {"library_options.omp_threads", Type::kSwitch, "--omp-threads", "--no-omp-threads"},
    {"elastic.max_failures_in_a_row", Type::kNumber, "--max-failures-in-a-row"},
    {"logging.level", Type::kText, "--log-level"},
    {"logging.with_timestamp", Type::kSwitch, "--log-with-timestamp", "--log-without-timestamp"},
};

const Key* FindKey(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&](const Key& key) { return key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

bool IsGroup(absl::string_view name) {
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& key) {
    return absl::StartsWith(key.name, absl::StrCat(name, "."));
  });
}

std::string UnknownKey(const std::string& name) {
  int best = std::max<int>(1, name.size() / 3) + 1;
  absl::string_view closest;
  for (const Key& key : kKeys) {
    const int distance = options::EditDistance(name, key.name);
    if (distance >= best) continue;
    best = distance;
    closest = key.name;
  }
  return absl::StrCat("unknown key ", name,
                      closest.empty() ? "" : absl::StrCat("; did you mean ", closest, "?"));
}

absl::StatusOr<std::string> SwitchArgument(const Key& key, const options::Setting& setting) {
  // All that PyYAML, which Horovod reads its file with, takes for these.
  const auto is_one_of = [&](std::initializer_list<absl::string_view> words) {
    return setting.kind == options::Setting::Kind::kPlain &&
           std::find(words.begin(), words.end(), setting.value) != words.end();
  };
  if (is_one_of({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return std::string(key.flag);
  }
  if (is_one_of({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    return std::string(key.off);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key.name, ": '", setting.value, "' is not true or false"));
}

absl::StatusOr<std::string> ControllerArgument(const options::Setting& setting) {
  for (const char* name : {"gloo", "mpi"}) {
    if (setting.value == name) return absl::StrCat("--", name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(kController, ": '", setting.value, "' is not gloo or mpi"));
}

// Empty: it asks for nothing.
absl::StatusOr<std::string> ArgumentOf(const options::Setting& setting) {
  const Key* key = FindKey(setting.key);
  if (key == nullptr && !IsGroup(setting.key)) {
    return absl::InvalidArgumentError(UnknownKey(setting.key));
  }
  if (key == nullptr) {
    if (setting.kind == options::Setting::Kind::kEmpty) return "";
    return absl::InvalidArgumentError(absl::StrCat(setting.key, ": must be a group of settings"));
  }
  if (setting.kind == options::Setting::Kind::kEmpty) {
    return absl::InvalidArgumentError(absl::StrCat(key->name, ": has no value"));
  }
  if (key->name == kController) return ControllerArgument(setting);
  if (key->type == Type::kSwitch) return SwitchArgument(*key, setting);
  if (key->type == Type::kNumber && setting.kind == options::Setting::Kind::kQuoted) {
    return absl::InvalidArgumentError(
        absl::StrCat(key->name, ": '", setting.value, "' is a text; a number has no quotes"));
  }
  return absl::StrCat(key->flag, "=", setting.value);
}

}  // namespace

absl::StatusOr<std::vector<ConfigFlag>> FlagsOfSettings(
    const std::vector<options::Setting>& settings, const std::string& file) {
  std::vector<ConfigFlag> flags;
  for (const options::Setting& setting : settings) {
    const std::string where = absl::StrCat(file, ":", setting.line, ": ");
    const absl::StatusOr<std::string> argument = ArgumentOf(setting);
    if (!argument.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(where, argument.status().message()));
    }
    if (!argument->empty()) flags.push_back({where + setting.key, *argument});
  }
  return flags;
}

absl::StatusOr<std::vector<ConfigFlag>> ReadConfigFile(const std::string& file) {
  ASSIGN_OR_RETURN(const std::vector<options::Setting> settings, options::ReadSettings(file));
  return FlagsOfSettings(settings, file);
}

}  // namespace hvd::launcher::cli
