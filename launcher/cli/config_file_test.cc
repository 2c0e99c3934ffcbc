#include "launcher/cli/config_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::cli {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<std::vector<ConfigFlag>> Read(const std::string& text) {
  const auto settings = options::ParseSettings(text, "f.yaml");
  EXPECT_TRUE(settings.ok()) << settings.status();
  return FlagsOfSettings(*settings, "f.yaml");
}

std::vector<std::string> Arguments(const std::string& text) {
  const auto flags = Read(text);
  EXPECT_TRUE(flags.ok()) << flags.status();
  std::vector<std::string> arguments;
  for (const ConfigFlag& flag : flags.value_or(std::vector<ConfigFlag>{})) {
    arguments.push_back(flag.argument);
  }
  return arguments;
}

TEST(ConfigFile, EveryKey_BecomesItsFlag) {
  EXPECT_THAT(
      Arguments(R"(
controller: gloo
params:
  fusion_threshold_mb: 32
  cycle_time_ms: 5
  cache_capacity: 2048
  hierarchical_allreduce: true
  hierarchical_allgather: true
  torus_allreduce: true
autotune:
  enabled: true
  log_file: "log.csv"
  warmup_samples: 5
  steps_per_sample: 20
  bayes_opt_max_samples: 50
  gaussian_process_noise: 0.9
timeline:
  filename: t.json
  mark_cycles: true
stall_check:
  enabled: false
  warning_time_seconds: 120
  shutdown_time_seconds: 240
library_options:
  mpi_threads_disable: true
  num_nccl_streams: 2
  thread_affinity: 1
  gloo_timeout_seconds: 60
  omp_threads: false
elastic:
  max_failures_in_a_row: 5
logging:
  level: INFO
  with_timestamp: false
)"),
      ElementsAre("--gloo", "--fusion-threshold-mb=32", "--cycle-time-ms=5",
                  "--cache-capacity=2048", "--hierarchical-allreduce", "--hierarchical-allgather",
                  "--torus-allreduce", "--autotune", "--autotune-log-file=log.csv",
                  "--autotune-warmup-samples=5", "--autotune-steps-per-sample=20",
                  "--autotune-bayes-opt-max-samples=50", "--autotune-gaussian-process-noise=0.9",
                  "--timeline-filename=t.json", "--timeline-mark-cycles", "--no-stall-check",
                  "--stall-check-warning-time-seconds=120",
                  "--stall-check-shutdown-time-seconds=240", "--mpi-threads-disable",
                  "--num-nccl-streams=2", "--thread-affinity=1", "--gloo-timeout-seconds=60",
                  "--no-omp-threads", "--max-failures-in-a-row=5", "--log-level=INFO",
                  "--log-without-timestamp"));
}

TEST(ConfigFile, EveryKeyOfTheJob_BecomesItsFlag) {
  EXPECT_THAT(Arguments(R"(
job:
  np: auto
  hosts: a:2,b:2
  hostfile: f
  launcher: srun
  ssh_port: 22
  ssh_identity_file: k
  network_interfaces: eth0,ib0
  start_timeout: 9
elastic:
  min_np: 1
  max_np: 4
  spares: 1
  timeout: 60
  join_delay: 0.5
  grace: 20
  host_discovery_script: ./hosts.sh
  slots_per_host: 2
  reset_limit: 3
  max_failures: 5/10m
  max_failures_in_a_row: 5
  blacklist_cooldown_range: 10 100
output:
  filename: d
  rotate_mb: 5
  rotate_files: 3
  format: json
  prefix_timestamp: false
  ranks_filter: 0,2
  event_log: e
  metrics: 127.0.0.1:0
)"),
              ElementsAre("--num-proc=auto", "--hosts=a:2,b:2", "--hostfile=f", "--launcher=srun",
                          "--ssh-port=22", "--ssh-identity-file=k", "--network-interfaces=eth0,ib0",
                          "--start-timeout=9", "--min-np=1", "--max-np=4", "--spares=1",
                          "--elastic-timeout=60", "--join-delay=0.5", "--grace=20",
                          "--host-discovery-script=./hosts.sh", "--slots-per-host=2",
                          "--reset-limit=3", "--max-failures=5/10m", "--max-failures-in-a-row=5",
                          "--blacklist-cooldown-range=10 100", "--output-filename=d",
                          "--output-rotate-mb=5", "--output-rotate-files=3", "--output-format=json",
                          "--ranks-filter=0,2", "--event-log=e", "--metrics=127.0.0.1:0"));
}

TEST(ConfigFile, SwitchedOff_BecomesTheOppositeFlag) {
  EXPECT_THAT(Arguments("params: {hierarchical_allreduce: false, torus_allreduce: False}\n"
                        "autotune: {enabled: false}\nstall_check: {enabled: true}\n"),
              ElementsAre("--no-hierarchical-allreduce", "--no-torus-allreduce", "--no-autotune",
                          "--stall-check"));
}

TEST(ConfigFile, Switches_AreAllThatYamlHasForThem) {
  EXPECT_THAT(Arguments("autotune: {enabled: yes}\nstall_check: {enabled: Off}\n"
                        "timeline: {mark_cycles: ON}\nparams: {torus_allreduce: NO}\n"),
              ElementsAre("--autotune", "--no-stall-check", "--timeline-mark-cycles",
                          "--no-torus-allreduce"));
}

TEST(ConfigFile, GroupWithoutSettings_AsksForNothing) {
  EXPECT_THAT(Arguments("params:\n#  cycle_time_ms: 5\nautotune: {}\n"), ElementsAre());
}

TEST(ConfigFile, Mistakes_AreNamedWithTheirLine) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"a: 1\n", "f.yaml:1: unknown key a"},
      {"params:\n  cycle_time: 5\n",
       "f.yaml:2: unknown key params.cycle_time; did you mean params.cycle_time_ms?"},
      {"param:\n", "f.yaml:1: unknown key param"},
      {"cycle_time_ms: 5\n",
       "f.yaml:1: unknown key cycle_time_ms; did you mean params.cycle_time_ms?"},
      {"filename: f\n",
       "f.yaml:1: unknown key filename; did you mean output.filename or timeline.filename?"},
      {"params: 5\n", "f.yaml:1: params: must be a group of settings"},
      {"params:\n  cycle_time_ms:\n", "f.yaml:2: params.cycle_time_ms: has no value"},
      {"params:\n  cycle_time_ms: '5'\n",
       "f.yaml:2: params.cycle_time_ms: '5' is a text; a number has no quotes"},
      {"autotune:\n\n  enabled: 1\n", "f.yaml:3: autotune.enabled: '1' is not true or false"},
      {"autotune: {enabled: 'true'}\n", "f.yaml:1: autotune.enabled: 'true' is not true or false"},
      {"controller: smoke\n", "f.yaml:1: controller: 'smoke' is not gloo or mpi"},
  };
  for (const auto& [text, message] : mistakes) EXPECT_EQ(Read(text).status().message(), message);
}

}  // namespace
}  // namespace hvd::launcher::cli
