// Tests of every flag of Horovod's horovodrun, in each spelling: it works as documented, or is
// refused with an alternative.
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/options.h"

namespace hvd::launcher::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

absl::StatusOr<Options> Parse(const std::string& line) {
  return ParseOptions(absl::StrSplit(line, ' ', absl::SkipEmpty()), {});
}

Options Given(const std::string& flag, const std::string& needed = "-np 2") {
  auto options = Parse(needed + " " + flag + " cmd");
  EXPECT_TRUE(options.ok()) << flag << ": " << options.status();
  return options.value_or(Options{});
}

TEST(HorovodFlags, Information_IsShown) {
  using Action = Options::Action;
  for (const char* flag : {"-v", "--version"}) EXPECT_EQ(Parse(flag)->action, Action::kShowVersion);
  for (const char* flag : {"-cb", "--check-build"}) {
    EXPECT_EQ(Parse(flag)->action, Action::kCheckBuild);
  }
  for (const char* flag : {"-h", "--help"}) EXPECT_EQ(Parse(flag)->action, Action::kShowHelp);
}

TEST(HorovodFlags, JobAndHosts_AreUnderstood) {
  for (const char* flag : {"-np 3", "--num-proc 3", "--num-proc=3"}) {
    EXPECT_EQ(Given(flag, "").num_proc, 3);
  }
  EXPECT_EQ(Given("--start-timeout 7").start_timeout, absl::Seconds(7));
  EXPECT_EQ(Given("--network-interfaces a0,b0").networks.size(), 2u);
  EXPECT_EQ(Given("--network-interface a0 --network-interface b0").networks.size(), 2u);
  for (const char* flag : {"-p 22", "--ssh-port 22"}) EXPECT_EQ(Given(flag).ssh_port, 22);
  for (const char* flag : {"-i k", "--ssh-identity-file k"}) {
    EXPECT_EQ(Given(flag).ssh_identity_file, "k");
  }
  for (const char* flag : {"-H a:2", "--hosts a:2"}) EXPECT_EQ(Given(flag).hosts, "a:2");
  for (const char* flag : {"-hostfile f", "--hostfile f"}) EXPECT_EQ(Given(flag).hostfile, "f");
}

TEST(HorovodFlags, Output_IsUnderstood) {
  EXPECT_EQ(Given("--output-filename d").output.directory, "d");
  EXPECT_TRUE(Given("--verbose").verbose);
  for (const char* flag : {"-prefix-timestamp", "--prefix-output-with-timestamp"}) {
    EXPECT_TRUE(Given(flag).output.timestamps);
  }
}

TEST(HorovodFlags, Elastic_IsUnderstood) {
  for (const char* flag : {"--min-np 1", "--min-num-proc 1"}) {
    EXPECT_EQ(Given(flag).elastic->min_workers, 1);
  }
  for (const char* flag : {"--max-np 4", "--max-num-proc 4"}) {
    EXPECT_EQ(Given(flag).elastic->max_workers, 4);
  }
  EXPECT_EQ(Given("--host-discovery-script s --slots-per-host 3").elastic->slots_per_host, 3);
  EXPECT_EQ(Given("--host-discovery-script s").elastic->script, "s");
  EXPECT_TRUE(Given("--min-np 1 --elastic-timeout 9").elastic.has_value());
  EXPECT_TRUE(Given("--min-np 1 --reset-limit 9").elastic.has_value());
  EXPECT_TRUE(Given("--min-np 1 --blacklist-cooldown-range 1 9").elastic.has_value());
}

TEST(HorovodFlags, Tuneables_BecomeVariables) {
  const struct {
    const char* flag;
    const char* variable;
    const char* value;
  } rows[] = {
      {"--fusion-threshold-mb 2", "HOROVOD_FUSION_THRESHOLD", "2097152"},
      {"--cycle-time-ms 0.5", "HOROVOD_CYCLE_TIME", "0.5"},
      {"--cache-capacity 3", "HOROVOD_CACHE_CAPACITY", "3"},
      {"--autotune", "HOROVOD_AUTOTUNE", "1"},
      {"--autotune --autotune-log-file f", "HOROVOD_AUTOTUNE_LOG", "f"},
      {"--autotune --autotune-warmup-samples 3", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "3"},
      {"--autotune --autotune-steps-per-sample 3", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "3"},
      {"--autotune --autotune-bayes-opt-max-samples 3", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
       "3"},
      {"--autotune --autotune-gaussian-process-noise 1", "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE",
       "1"},
      {"--timeline-filename f", "HOROVOD_TIMELINE", "f"},
      {"--timeline-filename f --timeline-mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES", "1"},
      {"--encrypt-data", "HOROVOD_ENCRYPT_DATA", "1"},
      {"--no-encrypt-data", "HOROVOD_ENCRYPT_DATA", "0"},
      {"--hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE", "1"},
      {"--no-hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE", "0"},
      {"--hierarchical-allgather", "HOROVOD_HIERARCHICAL_ALLGATHER", "1"},
      {"--no-hierarchical-allgather", "HOROVOD_HIERARCHICAL_ALLGATHER", "0"},
      {"--torus-allreduce", "HOROVOD_TORUS_ALLREDUCE", "1"},
      {"--no-stall-check", "HOROVOD_STALL_CHECK_DISABLE", "1"},
      {"--stall-check-warning-time-seconds 3", "HOROVOD_STALL_CHECK_TIME_SECONDS", "3"},
      {"--stall-check-shutdown-time-seconds 3", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "3"},
      {"--thread-affinity 1", "HOROVOD_THREAD_AFFINITY", "1"},
      {"--no-omp-threads", "HOROVOD_OMP_THREADS", "0"},
      {"--omp-threads", "HOROVOD_OMP_THREADS", "1"},
      {"--no-torch-env", "HOROVOD_TORCH_ENV", "0"},
      {"--stall-check", "HOROVOD_STALL_CHECK_DISABLE", "0"},
      {"--no-autotune", "HOROVOD_AUTOTUNE", "0"},
      {"--no-torus-allreduce", "HOROVOD_TORUS_ALLREDUCE", "0"},
      {"--thread-affinity 1,3", "HOROVOD_THREAD_AFFINITY", "1,3"},
      {"--gloo-timeout-seconds 3", "HOROVOD_GLOO_TIMEOUT_SECONDS", "3"},
      {"--agent-timeout-seconds 3", "HOROVOD_AGENT_TIMEOUT_SECONDS", "3"},
      {"--commit-copy-mbit 0", "HOROVOD_COMMIT_COPY_MBIT", "0"},
      {"--on-corruption evict", "HOROVOD_ON_CORRUPTION", "evict"},
      {"--log-level DEBUG", "HOROVOD_LOG_LEVEL", "DEBUG"},
      {"--log-without-timestamp", "HOROVOD_LOG_HIDE_TIME", "1"},
      {"--log-hide-timestamp", "HOROVOD_LOG_HIDE_TIME", "1"},
      {"--log-with-timestamp", "HOROVOD_LOG_HIDE_TIME", "0"},
      {"--no-log-hide-timestamp", "HOROVOD_LOG_HIDE_TIME", "0"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Given(row.flag).tunables, Contains(Pair(row.variable, row.value))) << row.flag;
  }
}

TEST(HorovodFlags, WhatAsksForTheUsual_IsAccepted) {
  for (const char* flag :
       {"--disable-cache", "--gloo", "--no-timeline-mark-cycles", "--no-mpi-threads-disable"}) {
    EXPECT_TRUE(Given(flag).tunables.empty()) << flag;
  }
}

TEST(HorovodFlags, UnsupportedFlag_IsRefusedWithARemedy) {
  for (const char* flag : {"--num-nccl-streams 2", "--mpi", "--mpi-threads-disable",
                           "--mpi-args=--x", "--tcp", "--jsrun", "--binding-args=--x"}) {
    const std::string message(Parse(std::string("-np 2 ") + flag + " cmd").status().message());
    EXPECT_THAT(message, HasSubstr(" is not available: ")) << flag;
    EXPECT_TRUE(message.find("leave it out") != message.npos ||
                message.find(" use ") != message.npos)
        << message;
  }
}

TEST(HorovodFlags, OfTwoThatContradict_OnlyOneMayBeGiven) {
  for (const char* flags :
       {"--autotune --no-autotune", "--hierarchical-allreduce --no-hierarchical-allreduce",
        "--timeline-mark-cycles --no-timeline-mark-cycles", "--stall-check --no-stall-check",
        "--log-with-timestamp --log-hide-timestamp", "-H a:2 --hostfile f",
        "-H a:2 --host-discovery-script s", "--hostfile f --host-discovery-script s"}) {
    EXPECT_THAT(std::string(Parse(std::string("-np 2 ") + flags + " cmd").status().message()),
                HasSubstr("exclude each other"))
        << flags;
  }
}

TEST(HorovodFlags, LongFlags_CanBeShortened) {
  EXPECT_EQ(Given("--hostf f").hostfile, "f");
  EXPECT_EQ(Given("--num-p 3").num_proc, 3);
  EXPECT_THAT(std::string(Parse("-np 2 --autotune- cmd").status().message()),
              HasSubstr("ambiguous: --autotune-bayes-opt-max-samples, "));
}

}  // namespace
}  // namespace hvd::launcher::cli
