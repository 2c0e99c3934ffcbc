#include "base/settings/runtime_settings.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/settings/setting_readers.h"
#include "base/text/edit_distance.h"
#include "base/text/names.h"

namespace hvd::settings {
namespace {

using Kind = RuntimeSetting::Kind;

constexpr absl::string_view kPrefix = "HOROVOD_";
constexpr int kMisspeltLetters = 2;

// A builder of table rows, whose methods name the fields that they set.
struct Row : RuntimeSetting {
  Row(Kind kind_is, absl::string_view name, absl::string_view usual, absl::string_view means,
      Read reads) {
    kind = kind_is;
    variable = name;
    default_value = usual;
    meaning = means;
    read = std::move(reads);
  }
  Row& Flag(absl::string_view name, absl::string_view value = "") {
    flag = name;
    value_name = value;
    return *this;
  }
  Row& Zero(absl::string_view means, absl::string_view name = "") {
    meaning_of_0 = means;
    flag_for_0 = name;
    return *this;
  }
  Row& Times(int64_t count) {
    factor = count;
    return *this;
  }
  Row& OnlyWith(absl::string_view name) {
    only_with = name;
    return *this;
  }
  Row& Key(absl::string_view name) {
    key = name;
    return *this;
  }
  Row& KeyForZero(absl::string_view name) {
    key_says_0 = true;
    return Key(name);
  }
};

Row NumberRow(absl::string_view variable, absl::string_view usual, absl::string_view meaning,
              Read read) {
  return Row(Kind::kNumber, variable, usual, meaning, std::move(read));
}

Row TextRow(absl::string_view variable, absl::string_view usual, absl::string_view meaning,
            Read read) {
  return Row(Kind::kText, variable, usual, meaning, std::move(read));
}

Row SwitchRow(absl::string_view variable, absl::string_view usual, absl::string_view meaning,
              Read read) {
  return Row(Kind::kSwitch, variable, usual, meaning, std::move(read));
}

std::vector<RuntimeSetting> Tuneables() {
  return {
      NumberRow("HOROVOD_FUSION_THRESHOLD", "134217728",
                "Maximum size of a fused reduction: variable in bytes, flag in MB; 0: no fusion",
                ReadFusionThreshold)
          .Flag("--fusion-threshold-mb", "MB")
          .Times(int64_t{1} << 20)
          .Key("params.fusion_threshold_mb"),
      NumberRow("HOROVOD_CYCLE_TIME", "",
                "Milliseconds that a ready tensor may wait for others to fuse with", ReadCycleTime)
          .Flag("--cycle-time-ms", "MS")
          .Key("params.cycle_time_ms"),
      NumberRow("HOROVOD_CACHE_CAPACITY", "1024",
                "Number of tensors whose negotiation is cached; 0: none",
                Count(&EngineEnv::cache_capacity))
          .Flag("--cache-capacity", "N")
          .Key("params.cache_capacity"),
      SwitchRow("HOROVOD_DISABLE_GROUP_FUSION", "0", "A group's tensors are not fused with others",
                Switch(&EngineEnv::disable_group_fusion))
          .Zero("They may be fused with others"),
      SwitchRow("HOROVOD_HIERARCHICAL_ALLREDUCE", "1", "Sums in each host first, then across",
                Switch(&RuntimeEnv::hierarchical_allreduce))
          .Flag("--hierarchical-allreduce")
          .Zero("Sums as if every process were a host", "--no-hierarchical-allreduce")
          .Key("params.hierarchical_allreduce"),
      SwitchRow("HOROVOD_HIERARCHICAL_ALLGATHER", "1", "Gathers in each host first, then across",
                Switch(&RuntimeEnv::hierarchical_allgather))
          .Flag("--hierarchical-allgather")
          .Zero("Gathers as if every process were a host", "--no-hierarchical-allgather")
          .Key("params.hierarchical_allgather"),
      SwitchRow("HOROVOD_TORUS_ALLREDUCE", "0", "The same as HOROVOD_HIERARCHICAL_ALLREDUCE=1",
                ReadTorus)
          .Flag("--torus-allreduce")
          .Zero("No effect", "--no-torus-allreduce")
          .Key("params.torus_allreduce"),
      SwitchRow("HOROVOD_SHARED_MEMORY", "1", "Shared memory among the processes of a host",
                Switch(&RuntimeEnv::shared_memory))
          .Zero("TCP also within a host"),
      TextRow(
          "HOROVOD_CPU_OPERATIONS", "TCP",
          "Reduction of tensors in host memory across hosts. TCP: this version's own transport; "
          "GLOO: Gloo, neither authenticated nor encrypted",
          ReadCpuOperations),
      TextRow("HOROVOD_GPU_OPERATIONS", "NCCL",
              "Reduction of tensors on GPUs. NCCL: NCCL, or host memory where NCCL can't be used, "
              "which rank 0 reports; NCCL_ONLY: an error in that case; HOST: host memory",
              ReadGpuOperations),
  };
}

std::vector<RuntimeSetting> LogSettings() {
  return {
      TextRow("HOROVOD_LOG_LEVEL", "WARNING",
              "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL, case-insensitive", ReadLogLevel)
          .Flag("--log-level", "LEVEL")
          .Key("logging.level"),
      SwitchRow("HOROVOD_LOG_HIDE_TIME", "0", "No time in the runtime's log",
                Switch(&RuntimeEnv::log_hide_time))
          .Flag("--log-without-timestamp,--log-hide-timestamp")
          .Zero("Time in the runtime's log", "--log-with-timestamp,--no-log-hide-timestamp")
          .KeyForZero("logging.with_timestamp"),
  };
}

std::vector<RuntimeSetting> JobSettings() {
  return {
      SwitchRow("HOROVOD_ENCRYPT_DATA", "0", "TLS for the TCP connections between workers",
                Switch(&RuntimeEnv::encrypt_data))
          .Flag("--encrypt-data")
          .Zero("No TLS between workers", "--no-encrypt-data")
          .Key("library_options.encrypt_data"),
      SwitchRow("HOROVOD_STALL_CHECK_DISABLE", "0",
                "No warning about operations that some ranks never submit", ReadNoStallCheck)
          .Flag("--no-stall-check")
          .Zero("Warn about operations that some ranks never submit", "--stall-check")
          .KeyForZero("stall_check.enabled"),
      NumberRow("HOROVOD_STALL_CHECK_TIME_SECONDS", "60",
                "Seconds until the warning about stalled operations",
                Seconds(&EngineEnv::stall_warning_time))
          .Flag("--stall-check-warning-time-seconds", "N")
          .Key("stall_check.warning_time_seconds"),
      NumberRow("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "0",
                "Seconds until the missing ranks of a stalled operation are given up; 0: never",
                Seconds(&EngineEnv::stall_shutdown_time))
          .Flag("--stall-check-shutdown-time-seconds", "N")
          .Key("stall_check.shutdown_time_seconds"),
      TextRow("HOROVOD_THREAD_AFFINITY", "",
              "A core for the engine's thread of each local rank, with commas between", ReadCores)
          .Flag("--thread-affinity", "CORES")
          .Key("library_options.thread_affinity"),
      SwitchRow("HOROVOD_OMP_THREADS", "1",
                "OMP_NUM_THREADS is the host's cores / its processes, if it is not set",
                Switch(&RuntimeEnv::omp_threads))
          .Flag("--omp-threads")
          .Zero("OMP_NUM_THREADS is left alone", "--no-omp-threads")
          .Key("library_options.omp_threads"),
      SwitchRow("HOROVOD_TORCH_ENV", "1",
                "Workers of jobs of fixed size have RANK, WORLD_SIZE, MASTER_ADDR, ... of torchrun",
                Switch(&RuntimeEnv::torch_env))
          .Flag("--torch-env")
          .Zero("They do not have these variables", "--no-torch-env")
          .Key("library_options.torch_env"),
      NumberRow("HOROVOD_GLOO_TIMEOUT_SECONDS", "30",
                "Seconds for connecting, and that a collective operation waits while no data moves",
                ReadGlooTimeout)
          .Flag("--gloo-timeout-seconds", "N")
          .Key("library_options.gloo_timeout_seconds"),
      NumberRow("HOROVOD_AGENT_TIMEOUT_SECONDS", "30",
                "Seconds that an agent, a worker or the daemon may be silent", ReadAgentTimeout)
          .Flag("--agent-timeout-seconds", "N"),
      NumberRow(
          "HOROVOD_COMMIT_COPY_MBIT", "1000",
          "Megabits per second for the copies of an elastic job's commits on another host; 0: "
          "No copies",
          Count(&RuntimeEnv::commit_copy_mbit))
          .Flag("--commit-copy-mbit", "N"),
      TextRow(
          "HOROVOD_ON_CORRUPTION", "warn",
          "When a commit of an elastic job shows that the state of a rank differs. warn: a line "
          "names the rank; evict: it fails, and the others go on from the commit before; end: the "
          "job ends; off: nothing is compared",
          ReadOnCorruption)
          .Flag("--on-corruption", "POLICY")
          .Key("elastic.on_corruption"),
  };
}

std::vector<RuntimeSetting> AutotuneSettings() {
  std::vector<RuntimeSetting> rows = {
      SwitchRow("HOROVOD_AUTOTUNE", "0",
                "Tune the fusion threshold and the cycle time during training",
                Switch(&AutotuneEnv::enabled))
          .Flag("--autotune")
          .Zero("No tuning", "--no-autotune")
          .Key("autotune.enabled"),
      TextRow("HOROVOD_AUTOTUNE_LOG", "", "The CSV file in which rank 0 records the measurements",
              Text(&AutotuneEnv::log))
          .Flag("--autotune-log-file", "FILE")
          .Key("autotune.log_file"),
      NumberRow("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "3",
                "Number of warm-up samples, which are not used",
                Count(&AutotuneEnv::warmup_samples))
          .Flag("--autotune-warmup-samples", "N")
          .Key("autotune.warmup_samples"),
      NumberRow("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "10",
                "Steps that are measured for one setting",
                CountFromOne(&AutotuneEnv::steps_per_sample))
          .Flag("--autotune-steps-per-sample", "N")
          .Key("autotune.steps_per_sample"),
      NumberRow("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "20",
                "Samples after which the best setting is kept",
                CountFromOne(&AutotuneEnv::max_samples))
          .Flag("--autotune-bayes-opt-max-samples", "N")
          .Key("autotune.bayes_opt_max_samples"),
      NumberRow("HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.8",
                "Assumed fraction of noise in the differences between samples", ReadNoise)
          .Flag("--autotune-gaussian-process-noise", "X")
          .Key("autotune.gaussian_process_noise"),
  };
  // As in Horovod, whose launcher passes these on with --autotune only.
  for (size_t i = 1; i < rows.size(); ++i) rows[i].only_with = rows[0].variable;
  return rows;
}

std::vector<RuntimeSetting> TimelineSettings() {
  return {
      TextRow("HOROVOD_TIMELINE", "",
              "Record what all ranks do, for Perfetto or chrome://tracing; rank 0 writes",
              Text(&RuntimeEnv::timeline))
          .Flag("--timeline-filename", "FILE")
          .Key("timeline.filename"),
      SwitchRow("HOROVOD_TIMELINE_MARK_CYCLES", "0",
                "Also record the cycles of the runtime's engine",
                Switch(&RuntimeEnv::timeline_mark_cycles))
          .Flag("--timeline-mark-cycles")
          .Zero("Do not record the cycles", "--no-timeline-mark-cycles")
          .OnlyWith("HOROVOD_TIMELINE")
          .Key("timeline.mark_cycles"),
  };
}

// Variables that the agent sets, and variables of NCCL. They are in the table because only its
// variables are read.
std::vector<RuntimeSetting> InternalSettings() {
  return {
      TextRow("NCCL_HOSTID", "", "NCCL's: ranks with different ones may share a GPU",
              Text(&RuntimeEnv::nccl_host_id)),
      SwitchRow("NCCL_MULTI_RANK_GPU_ENABLE", "0", "NCCL's, from 2.30 on: ranks may share a GPU",
                ReadSharedGpus),
      TextRow("HOROVOD_AGENT_SOCKET", "", "Where the agent's workers ask for their credentials",
              Text(&RuntimeEnv::agent_socket)),
      NumberRow("HOROVOD_WORKER_ID", "", "This worker's number in the job", ReadWorkerId),
      TextRow("HOROVOD_WORKER_WORD", "", "The secret by which the agent authenticates this worker",
              Text(&RuntimeEnv::worker_word)),
  };
}

void AddGroup(absl::string_view heading, std::vector<RuntimeSetting> rows,
              std::vector<RuntimeSetting>* table) {
  for (RuntimeSetting& row : rows) {
    row.group = heading;
    row.is_internal = heading.empty();
    table->push_back(std::move(row));
  }
}

}  // namespace

const std::vector<RuntimeSetting>& RuntimeSettings() {
  static const auto* const table = [] {
    auto* all = new std::vector<RuntimeSetting>;
    AddGroup("Tuneable parameters", Tuneables(), all);
    AddGroup("Runtime's own log", LogSettings(), all);
    AddGroup("Runtime", JobSettings(), all);
    AddGroup("Autotune", AutotuneSettings(), all);
    AddGroup("Timeline", TimelineSettings(), all);
    AddGroup("", InternalSettings(), all);
    return all;
  }();
  return *table;
}

Environment ReadRuntimeVariables() {
  std::vector<std::string> names;
  for (const RuntimeSetting& setting : RuntimeSettings()) names.emplace_back(setting.variable);
  for (const MeaninglessVariable& each : MeaninglessVariables()) names.emplace_back(each.name);
  Environment result = ReadVariables(names);
  for (const auto& [name, value] : ReadEnvironment()) {
    if (absl::StartsWith(name, kPrefix)) result.emplace(name, value);
  }
  return result;
}

namespace {

void NoteMeaningless(const Environment& environment, std::vector<std::string>* notes) {
  for (const MeaninglessVariable& variable : MeaninglessVariables()) {
    const auto found = environment.find(std::string(variable.name));
    // horovodrun itself sets some of these to their neutral values.
    const bool is_news = found != environment.end() && !found->second.empty() &&
                         absl::AsciiStrToLower(found->second) != variable.neutral_value;
    if (!is_news) continue;
    notes->push_back(
        absl::StrCat(variable.name, "=", found->second, " has no meaning here: ", variable.reason));
  }
}

// The variable of a setting that is probably meant by `name`; empty: `name` is one, or resembles
// none.
absl::string_view SettingMeantBy(absl::string_view name) {
  std::vector<absl::string_view> variables;
  for (const RuntimeSetting& setting : RuntimeSettings()) {
    if (name == setting.variable) return {};
    if (!setting.is_internal) variables.emplace_back(setting.variable);
  }
  return text::Nearest(name, variables, kMisspeltLetters);
}

void NoteMisspelt(const Environment& environment, std::vector<std::string>* notes) {
  for (const auto& [name, value] : environment) {
    const absl::string_view meant = value.empty() ? "" : SettingMeantBy(name);
    if (meant.empty()) continue;
    notes->push_back(absl::StrCat(name, " has no effect: did you mean ", meant, "?"));
  }
}

}  // namespace

absl::StatusOr<RuntimeEnv> ParseRuntimeEnv(const Environment& environment) {
  RuntimeEnv result;
  for (const RuntimeSetting& setting : RuntimeSettings()) {
    const auto found = environment.find(std::string(setting.variable));
    if (found == environment.end() || found->second.empty()) continue;
    const std::string problem = setting.read(found->second, &result);
    if (!problem.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("environment variable ", setting.variable, "=",
                                                     text::Quoted(found->second), ": must be ",
                                                     problem));
    }
  }
  if (result.gloo && result.encrypt_data) {
    return absl::InvalidArgumentError(
        "HOROVOD_CPU_OPERATIONS=GLOO: Gloo's connections can't be encrypted, as "
        "HOROVOD_ENCRYPT_DATA=1 wants; TCP's can");
  }
  NoteMeaningless(environment, &result.notes);
  NoteMisspelt(environment, &result.notes);
  return result;
}

const std::vector<MeaninglessVariable>& MeaninglessVariables() {
  constexpr absl::string_view kNoMpi = "this version has no MPI";
  static const auto* const variables = new std::vector<MeaninglessVariable>{
      {"HOROVOD_CONTROLLER", "gloo", "this version has its own, over TCP"},
      {"HOROVOD_NUM_NCCL_STREAMS", "1", "a group has one stream"},
      {"HOROVOD_BATCH_D2D_MEMCOPIES", "1", "NCCL takes tensors where they are"},
      {"HOROVOD_ENABLE_ASYNC_COMPLETION", "0", "completed results can be used on every stream"},
      {"HOROVOD_DISABLE_NVTX_RANGES", "1", "this version marks none"},
      {"HOROVOD_ADASUM_MPI_CHUNK_SIZE", "", kNoMpi},
      {"HOROVOD_MPI_THREADS_DISABLE", "0", kNoMpi},
      {"HOROVOD_CCL_CACHE", "0", "this version does not use oneCCL"},
      {"HOROVOD_ENABLE_XLA_OPS", "0", "jit_compile=True works without it"},
      {"DDL_OPTIONS", "", "this version does not use DDL"},
  };
  return *variables;
}

}  // namespace hvd::settings
