#include "launcher/cli/runtime_flags.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::launcher::cli {
namespace {

absl::Status CheckLogLevel(const std::string& level) {
  for (const char* known : {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"}) {
    if (level == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--log-level: '", level, "' is not one of TRACE, DEBUG, INFO, WARNING, ERROR, FATAL"));
}

absl::Status CheckCycleTime(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cycle-time-ms: '", text, "' is not a number"));
  }
  if (value < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--cycle-time-ms=", text, " must be >= 0"));
  }
  return absl::OkStatus();
}

}  // namespace

void RuntimeFlags::Declare(options::FlagTable& flags) {
  DeclareTuneables(flags);
  DeclareLog(flags);
  flags.Group("Runtime");
  flags.Flag("--encrypt-data", "TLS for what workers say to each other over TCP",
             [this] { Set("HOROVOD_ENCRYPT_DATA", "1"); });
  flags.Flag("--no-encrypt-data", "None (default)", [this] { Set("HOROVOD_ENCRYPT_DATA", "0"); });
  flags.Opposites("--encrypt-data", "--no-encrypt-data");
  flags.Flag("--no-stall-check", "Don't look for operations that some ranks never submit",
             [this] { Set("HOROVOD_STALL_CHECK_DISABLE", "1"); });
  flags.Harmless("--stall-check");
  flags.Opposites("--stall-check", "--no-stall-check");
  Tuneable(flags, "--stall-check-warning-time-seconds", "Warn after (60)",
           "HOROVOD_STALL_CHECK_TIME_SECONDS");
  Tuneable(flags, "--stall-check-shutdown-time-seconds", "Give up after (0: never)",
           "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS");
  Tuneable(flags, "--thread-affinity", "Core of the runtime's thread", "HOROVOD_THREAD_AFFINITY");
  flags.Flag("--no-omp-threads", "Leave OMP_NUM_THREADS alone (the host's cores / its processes)",
             [this] { Set("HOROVOD_OMP_THREADS", "0"); });
  flags.Harmless("--omp-threads");
  flags.Opposites("--omp-threads", "--no-omp-threads");
  Tuneable(flags, "--gloo-timeout-seconds", "For one collective operation (30)",
           "HOROVOD_GLOO_TIMEOUT_SECONDS");
  Tuneable(flags, "--agent-timeout-seconds", "For an agent or this program to be silent (30)",
           "HOROVOD_AGENT_TIMEOUT_SECONDS");
  flags.Harmless("--no-mpi-threads-disable");
}

void RuntimeFlags::DeclareTuneables(options::FlagTable& flags) {
  flags.Group("Tuneable parameters");
  Tuneable(flags, "--fusion-threshold-mb", "Size of the fusion buffer in MB (128)",
           "HOROVOD_FUSION_THRESHOLD", int64_t{1} << 20);
  flags.Value("--cycle-time-ms", "MS", "How long to gather tensors for fusion",
              [this](const std::string& text) {
                RETURN_IF_ERROR(CheckCycleTime(text));
                Set("HOROVOD_CYCLE_TIME", text);
                return absl::OkStatus();
              });
  Tuneable(flags, "--cache-capacity", "Entries of the response cache (1024)",
           "HOROVOD_CACHE_CAPACITY");
  DeclareHierarchy(flags);
}

void RuntimeFlags::DeclareHierarchy(options::FlagTable& flags) {
  flags.Flag("--hierarchical-allreduce", "Sums in each host first, then across (default)",
             [this] { Set("HOROVOD_HIERARCHICAL_ALLREDUCE", "1"); });
  flags.Flag("--no-hierarchical-allreduce", "As if every process were a host",
             [this] { Set("HOROVOD_HIERARCHICAL_ALLREDUCE", "0"); });
  flags.Opposites("--hierarchical-allreduce", "--no-hierarchical-allreduce");
  flags.Flag("--hierarchical-allgather", "The same for allgather (default)",
             [this] { Set("HOROVOD_HIERARCHICAL_ALLGATHER", "1"); });
  flags.Flag("--no-hierarchical-allgather", "As if every process were a host",
             [this] { Set("HOROVOD_HIERARCHICAL_ALLGATHER", "0"); });
  flags.Opposites("--hierarchical-allgather", "--no-hierarchical-allgather");
  flags.Flag("--torus-allreduce", "The same as --hierarchical-allreduce",
             [this] { Set("HOROVOD_TORUS_ALLREDUCE", "1"); });
  flags.Harmless("--no-torus-allreduce");
  flags.Opposites("--torus-allreduce", "--no-torus-allreduce");
}

void RuntimeFlags::DeclareLog(options::FlagTable& flags) {
  flags.Group("Runtime's own log");
  flags.Value("--log-level", "LEVEL", "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL",
              [this](const std::string& text) {
                const std::string level = absl::AsciiStrToUpper(text);
                RETURN_IF_ERROR(CheckLogLevel(level));
                Set("HOROVOD_LOG_LEVEL", level);
                return absl::OkStatus();
              });
  flags.Flag("--log-without-timestamp,--log-hide-timestamp", "No time in it",
             [this] { Set("HOROVOD_LOG_HIDE_TIME", "1"); });
  flags.Flag("--log-with-timestamp,--no-log-hide-timestamp", "Time in it (default)",
             [this] { Set("HOROVOD_LOG_HIDE_TIME", "0"); });
  flags.Opposites("--log-with-timestamp", "--log-without-timestamp");
}

void RuntimeFlags::Tuneable(options::FlagTable& flags, const std::string& name,
                            const std::string& help, const std::string& variable, int64_t factor) {
  flags.Value(name, "N", help, [this, name, variable, factor](const std::string& text) {
    ASSIGN_OR_RETURN(const int64_t value, options::ParseInteger(name, text, 0, INT32_MAX));
    Set(variable, absl::StrCat(value * factor));
    return absl::OkStatus();
  });
}

}  // namespace hvd::launcher::cli
