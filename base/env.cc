#include "base/env.h"

#include <stdlib.h>
#include <unistd.h>

#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvd {
namespace {

// Why a value can't be taken, as the end of a sentence; empty if it was taken.
using Problem = std::string;

Problem ParseCount(const std::string& text, size_t* out) {
  uint64_t value;
  if (!absl::SimpleAtoi(text, &value)) return "a whole number, 0 or larger";
  *out = value;
  return "";
}

Problem ParseNumber(const std::string& text, size_t* out) {
  const Problem problem = ParseCount(text, out);
  return problem.empty() && *out > 0 && *out <= 1000000 ? "" : "a whole number from 1 to 1000000";
}

Problem ParseTime(const std::string& text, absl::Duration unit, absl::Duration* out) {
  double value;
  if (!absl::SimpleAtod(text, &value) || !(value >= 0) || value > 1e9)
    return "a number, 0 or larger";
  *out = value * unit;
  return "";
}

Problem ParsePart(const std::string& text, double* out) {
  const bool good = absl::SimpleAtod(text, out) && *out >= 0 && *out <= 1;
  return good ? "" : "a number from 0 to 1";
}

Problem ParseSwitch(const std::string& text, bool* out) {
  if (text != "0" && text != "1") return "0 or 1";
  *out = text == "1";
  return "";
}

Problem ParseCores(const std::string& text, std::vector<int>* out) {
  std::vector<int> cores;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int core;
    if (!absl::SimpleAtoi(part, &core) || core < 0) return "core numbers separated by commas";
    cores.push_back(core);
  }
  *out = std::move(cores);
  return "";
}

Problem ParseLevel(const std::string& text, std::string* out) {
  const std::string level = absl::AsciiStrToLower(text);
  for (const char* known : {"trace", "debug", "info", "warning", "error", "fatal"}) {
    if (level == known) {
      *out = level;
      return "";
    }
  }
  return "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL";
}

Problem ParseGpuOperations(const std::string& text, RuntimeEnv* env) {
  const std::string library = absl::AsciiStrToUpper(text);
  env->nccl_is_only_way = library == "NCCL_ONLY";
  env->gpu_operations = library == "NCCL" || env->nccl_is_only_way;
  // Those of Horovod that aren't here have the effect that they had on a CPU's build.
  for (const char* known : {"NCCL", "NCCL_ONLY", "HOST", "MPI", "CCL", "DDL"}) {
    if (library == known) return "";
  }
  return "NCCL, NCCL_ONLY or HOST";
}

struct Row {
  EnvVariable variable;
  std::function<Problem(const std::string&, RuntimeEnv*)> parse;
};

const std::vector<Row>& Rows() {
  static const auto* const rows = new std::vector<Row>{
      {{"HOROVOD_FUSION_THRESHOLD", "134217728",
        "bytes that are reduced together at most; 0: no fusion"},
       [](const auto& v, RuntimeEnv* e) {
         e->fusion_threshold_is_given = true;
         return ParseCount(v, &e->fusion_threshold_bytes);
       }},
      {{"HOROVOD_CYCLE_TIME", "0",
        "milliseconds that a ready tensor may wait for others to fuse with"},
       [](const auto& v, RuntimeEnv* e) {
         e->cycle_time_is_given = true;
         return ParseTime(v, absl::Milliseconds(1), &e->cycle_time);
       }},
      {{"HOROVOD_CACHE_CAPACITY", "1024", "tensors whose negotiation is remembered; 0: none"},
       [](const auto& v, RuntimeEnv* e) { return ParseCount(v, &e->cache_capacity); }},
      {{"HOROVOD_DISABLE_GROUP_FUSION", "0", "1: groups are fused only within themselves"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->disable_group_fusion); }},
      {{"HOROVOD_AUTOTUNE", "0", "1: look for the best fusion threshold and cycle time"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->autotune.enabled); }},
      {{"HOROVOD_AUTOTUNE_LOG", "", "file for what was measured, written by rank 0"},
       [](const auto& v, RuntimeEnv* e) {
         e->autotune.log = v;
         return Problem();
       }},
      {{"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "3", "samples that are not counted"},
       [](const auto& v, RuntimeEnv* e) { return ParseCount(v, &e->autotune.warmup_samples); }},
      {{"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "10", "steps that are measured for one setting"},
       [](const auto& v, RuntimeEnv* e) { return ParseNumber(v, &e->autotune.steps_per_sample); }},
      {{"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "20", "samples after which the best one stays"},
       [](const auto& v, RuntimeEnv* e) { return ParseNumber(v, &e->autotune.max_samples); }},
      {{"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.8",
        "part of the scores' variance that may be noise"},
       [](const auto& v, RuntimeEnv* e) { return ParsePart(v, &e->autotune.noise); }},
      {{"HOROVOD_TIMELINE", "", "file for the timeline, written by rank 0; DYNAMIC: none yet"},
       [](const auto& v, RuntimeEnv* e) {
         e->timeline = v;
         return Problem();
       }},
      {{"HOROVOD_TIMELINE_MARK_CYCLES", "0", "1: the engine's rounds are in the timeline"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->timeline_mark_cycles); }},
      {{"HOROVOD_GLOO_TIMEOUT_SECONDS", "30",
        "bound on connecting and on each collective over Gloo"},
       [](const auto& v, RuntimeEnv* e) {
         Problem problem = ParseTime(v, absl::Seconds(1), &e->gloo_timeout);
         return problem.empty() && e->gloo_timeout == absl::ZeroDuration() ? "larger than 0"
                                                                           : problem;
       }},
      {{"HOROVOD_AGENT_TIMEOUT_SECONDS", "30",
        "how long agents, workers and the daemon may be silent towards each other"},
       [](const auto& v, RuntimeEnv* e) {
         Problem problem = ParseTime(v, absl::Seconds(1), &e->agent_timeout);
         return problem.empty() && e->agent_timeout < absl::Seconds(1) ? "at least 1" : problem;
       }},
      {{"HOROVOD_SHARED_MEMORY", "1", "0: ranks of a host use TCP among themselves, too"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->shared_memory); }},
      {{"HOROVOD_ENCRYPT_DATA", "0",
        "1: what workers say to each other over TCP goes under TLS; for the whole job"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->encrypt_data); }},
      {{"HOROVOD_HIERARCHICAL_ALLREDUCE", "1",
        "1: sums are made in each host first, then across; 0: as if every rank were a host"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->hierarchical_allreduce); }},
      {{"HOROVOD_TORUS_ALLREDUCE", "0", "1: the same as HOROVOD_HIERARCHICAL_ALLREDUCE=1"},
       [](const auto& v, RuntimeEnv* e) {
         bool torus = false;
         Problem problem = ParseSwitch(v, &torus);
         e->hierarchical_allreduce |= torus;
         return problem;
       }},
      {{"HOROVOD_HIERARCHICAL_ALLGATHER", "1", "the same for allgather"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->hierarchical_allgather); }},
      {{"HOROVOD_STALL_CHECK_DISABLE", "0", "1: no warning about ranks that are waited for"},
       [](const auto& v, RuntimeEnv* e) {
         bool disable = false;
         Problem problem = ParseSwitch(v, &disable);
         e->stall_check = !disable;
         return problem;
       }},
      {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "60", "seconds until that warning"},
       [](const auto& v, RuntimeEnv* e) {
         return ParseTime(v, absl::Seconds(1), &e->stall_warning_time);
       }},
      {{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "0", "seconds until a stalled job fails; 0: never"},
       [](const auto& v, RuntimeEnv* e) {
         return ParseTime(v, absl::Seconds(1), &e->stall_shutdown_time);
       }},
      {{"HOROVOD_GPU_OPERATIONS", "NCCL",
        "NCCL, or host memory if it fails; NCCL_ONLY: or an error; HOST: host memory"},
       ParseGpuOperations},
      {{"NCCL_HOSTID", "", "NCCL's: ranks with different ones may share a GPU"},
       [](const auto& v, RuntimeEnv* e) {
         e->nccl_host_id = v;
         return Problem();
       }},
      {{"NCCL_MULTI_RANK_GPU_ENABLE", "0", "NCCL's, from 2.30 on: 1: ranks may share a GPU"},
       [](const auto& v, RuntimeEnv* e) {
         e->nccl_shares_gpus = v == "1";
         return Problem();
       }},
      {{"HOROVOD_THREAD_AFFINITY", "", "a core for the engine thread of each local rank"},
       [](const auto& v, RuntimeEnv* e) { return ParseCores(v, &e->thread_affinity); }},
      {{"HOROVOD_OMP_THREADS", "1",
        "1: workers get OMP_NUM_THREADS, their share of the host's cores, if it is not set"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->omp_threads); }},
      {{"HOROVOD_LOG_LEVEL", "WARNING", "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL"},
       [](const auto& v, RuntimeEnv* e) { return ParseLevel(v, &e->log_level); }},
      {{"HOROVOD_LOG_HIDE_TIME", "0", "1: log lines without time stamps"},
       [](const auto& v, RuntimeEnv* e) { return ParseSwitch(v, &e->log_hide_time); }},
      {{"HOROVOD_AGENT_SOCKET", "",
        "set by the agent: where its workers ask for their credentials"},
       [](const auto& v, RuntimeEnv* e) {
         e->agent_socket = v;
         return Problem();
       }},
      {{"HOROVOD_WORKER_ID", "", "set by the agent: this worker's number in the job"},
       [](const auto& v, RuntimeEnv* e) {
         return absl::SimpleAtoi(v, &e->worker_id) ? Problem() : Problem("a whole number");
       }},
      {{"HOROVOD_WORKER_WORD", "", "set by the agent: by which it knows this worker again"},
       [](const auto& v, RuntimeEnv* e) {
         e->worker_word = v;
         return Problem();
       }},
  };
  return *rows;
}

}  // namespace

Environment ReadEnvironment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    result.emplace(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  return result;
}

Environment ReadRuntimeVariables() {
  Environment result;
  auto read = [&](absl::string_view variable) {
    const std::string name(variable);
    const char* value = getenv(name.c_str());
    if (value != nullptr) result.emplace(name, value);
  };
  for (const EnvVariable& variable : RuntimeEnvTable()) read(variable.name);
  for (const MeaninglessVariable& variable : MeaninglessVariables()) read(variable.name);
  return result;
}

absl::StatusOr<RuntimeEnv> ParseRuntimeEnv(const Environment& environment) {
  RuntimeEnv result;
  for (const Row& row : Rows()) {
    const auto found = environment.find(std::string(row.variable.name));
    // An empty value means "not set", as for the shells that can't unset a variable for one
    // command.
    if (found == environment.end() || found->second.empty()) continue;
    const Problem problem = row.parse(found->second, &result);
    if (!problem.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("environment variable ", row.variable.name,
                                                     "='", found->second, "': must be ", problem));
    }
  }
  for (const MeaninglessVariable& variable : MeaninglessVariables()) {
    const auto found = environment.find(std::string(variable.name));
    const bool is_news = found != environment.end() && !found->second.empty() &&
                         absl::AsciiStrToLower(found->second) != variable.neutral_value;
    if (!is_news) continue;
    result.notes.push_back(
        absl::StrCat(variable.name, "=", found->second, " has no meaning here: ", variable.reason));
  }
  return result;
}

const std::vector<MeaninglessVariable>& MeaninglessVariables() {
  constexpr absl::string_view kNoMpi = "this version has no MPI";
  static const auto* const variables = new std::vector<MeaninglessVariable>{
      {"HOROVOD_CONTROLLER", "gloo", "this version has its own, over TCP"},
      {"HOROVOD_CPU_OPERATIONS", "gloo",
       "this version uses shared memory in a host and Gloo across hosts"},
      {"HOROVOD_NUM_NCCL_STREAMS", "1", "a group has one stream"},
      {"HOROVOD_BATCH_D2D_MEMCOPIES", "1", "NCCL takes tensors where they are"},
      {"HOROVOD_ENABLE_ASYNC_COMPLETION", "0", "what is done is there for every stream"},
      {"HOROVOD_DISABLE_NVTX_RANGES", "1", "this version marks none"},
      {"HOROVOD_ADASUM_MPI_CHUNK_SIZE", "", kNoMpi},
      {"HOROVOD_MPI_THREADS_DISABLE", "0", kNoMpi},
      {"HOROVOD_CCL_CACHE", "0", "this version does not use oneCCL"},
      {"HOROVOD_ENABLE_XLA_OPS", "0", "this version is not for TensorFlow"},
      {"DDL_OPTIONS", "", "this version does not use DDL"},
  };
  return *variables;
}

const std::vector<EnvVariable>& RuntimeEnvTable() {
  static const auto* const table = [] {
    auto* result = new std::vector<EnvVariable>;
    for (const Row& row : Rows()) result->push_back(row.variable);
    return result;
  }();
  return *table;
}

}  // namespace hvd
