#include "launcher/plan/plan.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/spawn/ssh_launcher.h"

namespace hvd::launcher::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

LocalMachine Box() {
  LocalMachine machine;
  machine.host_name = "box";
  machine.interfaces = {{"lo", "127.0.0.1", false, true, true},
                        {"eth0", "10.0.0.5", false, false, true},
                        {"ib0", "192.168.7.5", false, false, true}};
  machine.working_directory = "/home/me";
  machine.resolve = [](const std::vector<std::string>&) {
    return net::NameTable{{"alias", {"10.0.0.5"}}, {"far", {"192.168.7.9"}}};
  };
  machine.source_towards = [](const std::string& address) {
    return address == "192.168.7.9" ? "192.168.7.5" : "";
  };
  return machine;
}

cli::Options Ask(int num_proc, const std::string& hosts) {
  cli::Options options;
  options.num_proc = num_proc;
  options.hosts = hosts;
  options.command = {"python", "train.py"};
  return options;
}

std::string Error(const cli::Options& options) {
  auto plan = MakePlan(options, {}, Box());
  EXPECT_FALSE(plan.ok());
  return std::string(plan.status().message());
}

TEST(MakePlan, DefaultIsThisMachineOnLoopback) {
  auto plan = MakePlan(Ask(3, ""), {{"A", "1"}}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->hosts.size(), 1u);
  EXPECT_EQ(plan->hosts[0].target.host, "localhost");
  EXPECT_TRUE(plan->hosts[0].target.local);
  EXPECT_EQ(plan->hosts[0].slots, 3);
  EXPECT_EQ(plan->num_proc, 3);
  EXPECT_THAT(plan->listen, ElementsAre("127.0.0.1:0"));
  EXPECT_THAT(plan->command, ElementsAre("python", "train.py"));
  EXPECT_EQ(plan->working_directory, "/home/me");
  EXPECT_EQ(plan->environment.at("A"), "1");
  EXPECT_EQ(plan->environment.at("PYTHONUNBUFFERED"), "1");
}

cli::Options AskAuto(const std::string& hosts) {
  cli::Options options = Ask(0, hosts);
  options.auto_num_proc = true;
  return options;
}

int ProcessesOf(const cli::Options& options, int cores, int gpus) {
  LocalMachine machine = Box();
  machine.cores = cores;
  machine.gpus = gpus;
  const auto plan = MakePlan(options, {}, machine);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->num_proc : -1;
}

TEST(MakePlan, AutomaticNumberIsThatOfGpusCoresOrSlots) {
  EXPECT_EQ(ProcessesOf(AskAuto(""), 6, 4), 4);
  EXPECT_EQ(ProcessesOf(AskAuto(""), 6, 0), 6);
  EXPECT_EQ(ProcessesOf(AskAuto(""), 0, 0), 1) << "the cores are unknown";
  EXPECT_EQ(ProcessesOf(AskAuto("localhost:3,far:2"), 6, 4), 5);
}

TEST(MakePlan, AutomaticNumberOfAnElasticJob) {
  cli::Options options = AskAuto("localhost:3,far:2");
  options.elastic.emplace();
  auto plan = MakePlan(options, {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_proc, 5);
  EXPECT_EQ(plan->elastic->min_workers, 5) << "as with a number";
  options.elastic->min_workers = 2;
  options.elastic->max_workers = 4;
  EXPECT_EQ(ProcessesOf(options, 1, 0), 4);
  options.elastic->min_workers = 6;
  options.elastic->max_workers = 9;
  EXPECT_EQ(Error(options), "--min-np (6) must not be more than -np auto, which is 5 here");
  // Its hosts are found later, and all their slots used.
  options = AskAuto("");
  options.elastic.emplace();
  options.elastic->script = "/bin/true";
  EXPECT_EQ(ProcessesOf(options, 6, 4), 1);
  options.elastic->min_workers = 2;
  EXPECT_EQ(ProcessesOf(options, 6, 4), 2);
}

TEST(MakePlan, RanksToShowMustExist) {
  cli::Options options = Ask(2, "");
  options.output.shown_ranks = {{0, 1}};
  EXPECT_TRUE(MakePlan(options, {}, Box()).ok());
  options.output.shown_ranks = {{0, 2}};
  EXPECT_EQ(Error(options),
            "--ranks-filter: there is no rank 2 in a job of 2 processes; the first is rank 0");
  options.elastic.emplace();
  EXPECT_TRUE(MakePlan(options, {}, Box()).ok()) << "there may be more ranks later";
}

TEST(MakePlan, AllLocalJobDoesNotAskTheResolver) {
  LocalMachine machine = Box();
  machine.resolve = [](const std::vector<std::string>& names) {
    ADD_FAILURE() << names[0];
    return net::NameTable{};
  };
  EXPECT_TRUE(MakePlan(Ask(3, "localhost:1,box:1,10.0.0.5:1"), {}, machine).ok());
}

const spawn::SshOptions& SshOf(const spawn::HostLauncher& launcher) {
  return dynamic_cast<const spawn::SshLauncher&>(launcher).options();
}

TEST(MakePlan, AgentTimeout_HoldsForSshOfStaticJobsToo) {
  cli::Options options = Ask(1, "far:1");
  options.tunables = {{"HOROVOD_AGENT_TIMEOUT_SECONDS", "90"}};
  auto plan = MakePlan(options, {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->agent_timeout, absl::Seconds(90));
  EXPECT_EQ(SshOf(*plan->hosts[0].target.launcher).silence_seconds, 90);
  options.elastic.emplace();
  plan = MakePlan(options, {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->agent_timeout, absl::Seconds(90));
  EXPECT_EQ(SshOf(*plan->launcher).silence_seconds, 15);
}

TEST(MakePlan, RemoteHostsAreReachedOnTheInterfaceTowardsThem) {
  cli::Options options = Ask(5, "far:2,alias:2,ssh-alias:2,unused:9");
  options.ssh_port = 2222;
  options.start_timeout = absl::Seconds(4);
  auto plan = MakePlan(options, {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->hosts.size(), 3u);
  EXPECT_FALSE(plan->hosts[0].target.local);
  EXPECT_EQ(SshOf(*plan->hosts[0].target.launcher).port, 2222);
  EXPECT_EQ(SshOf(*plan->hosts[0].target.launcher).connect_timeout_seconds, 4);
  EXPECT_EQ(SshOf(*plan->hosts[0].target.launcher).silence_seconds, 30);
  EXPECT_TRUE(plan->hosts[1].target.local);
  EXPECT_FALSE(plan->hosts[2].target.local);
  EXPECT_EQ(plan->hosts[2].slots, 1);
  EXPECT_EQ(plan->hosts[2].first_rank, 4);
  EXPECT_THAT(plan->listen, ElementsAre("192.168.7.5:0", "10.0.0.5:0"));
}

cli::Options AskInAJob(int num_proc) {
  cli::Options options = Ask(num_proc, "");
  options.allocation.emplace();
  options.allocation->job = "Slurm's job 17";
  options.allocation->slot = "GPU";
  options.allocation->launcher = "srun";
  options.allocation->hosts = {{"box", 2, 2}, {"far", 2, 2}};
  options.launcher = "srun";
  return options;
}

// "box:2 far:1"
std::string SlotsOf(const absl::StatusOr<JobPlan>& plan) {
  EXPECT_TRUE(plan.ok()) << plan.status();
  return absl::StrJoin(plan->hosts, " ", [](std::string* out, const PlannedHost& host) {
    absl::StrAppend(out, host.target.host, ":", host.slots);
  });
}

TEST(MakePlan, SchedulersHostsAreUsedInOrder) {
  const auto plan = MakePlan(AskInAJob(3), {}, Box());
  EXPECT_EQ(SlotsOf(plan), "box:2 far:1");
  EXPECT_TRUE(plan->hosts[0].target.local);
  EXPECT_THAT(PlanTable(*plan), HasSubstr("  on the hosts of Slurm's job 17, a slot for each GPU\n"
                                          "  ranks 0-1        box (this machine)\n"
                                          "  rank 2           far (over srun)\n"));
}

TEST(MakePlan, MoreProcessesThanSlotsOfTheSchedulerAreSpreadEvenly) {
  EXPECT_EQ(SlotsOf(MakePlan(AskInAJob(5), {}, Box())), "box:3 far:2");
  cli::Options elastic = AskInAJob(4);
  elastic.elastic.emplace();
  elastic.elastic->spec.spares = 2;
  EXPECT_EQ(SlotsOf(MakePlan(elastic, {}, Box())), "box:3 far:3");
  elastic.num_proc = 1;
  EXPECT_EQ(SlotsOf(MakePlan(elastic, {}, Box())), "box:2 far:2");
}

TEST(MakePlan, HostfileIsRead) {
  const std::string file = ::testing::TempDir() + "/plan_test_hosts";
  std::ofstream(file) << "localhost slots=2\n";
  cli::Options options = Ask(2, "");
  options.hostfile = file;
  auto plan = MakePlan(options, {}, Box());
  EXPECT_TRUE(plan.ok()) << plan.status();
  options.num_proc = 3;
  EXPECT_EQ(Error(options),
            "3 processes need 3 slots, but the hosts have 2: start fewer, or list more slots");
  EXPECT_THAT(Error(Ask(2, file)), HasSubstr("is a file; give it with --hostfile"));
  std::remove(file.c_str());
}

TEST(MakePlan, MistakesAreFoundBeforeAnythingStarts) {
  EXPECT_EQ(Error(Ask(3, "a:1,b:1")),
            "3 processes need 3 slots, but the hosts have 2: start fewer, or list more slots");
  EXPECT_THAT(Error(Ask(1, "a:0")), HasSubstr("-H: host a: 0 slots"));
  cli::Options options = Ask(1, "");
  options.hostfile = "/nonexistent/hosts";
  EXPECT_THAT(Error(options), HasSubstr("can't read host file /nonexistent/hosts"));
  options = Ask(1, "");
  options.ssh_identity_file = "/nonexistent/key";
  EXPECT_EQ(Error(options),
            "--ssh-identity-file: can't read /nonexistent/key: No such file or directory");
  options.ssh_identity_file = "/";
  EXPECT_THAT(Error(options), HasSubstr("it is not a file"));
  options = Ask(1, "");
  options.networks = {"eth7"};
  EXPECT_THAT(Error(options), HasSubstr("unknown network interface 'eth7'"));
  options = Ask(1, "");
  options.exports = {{"HOROVOD_CACHE_CAPACITY", "lots"}};
  EXPECT_THAT(Error(options), HasSubstr("HOROVOD_CACHE_CAPACITY"));
}

TEST(PlanTable, ListsRanksByHost) {
  auto plan = MakePlan(Ask(3, "far:2,localhost:1"), {}, Box());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(PlanTable(*plan),
            "3 processes: python train.py\n"
            "  ranks 0-1        far (over ssh)\n"
            "  rank 2           localhost (this machine)\n");
}

TEST(PlanTable, SaysOnceHowManyThreadsWorkersGet) {
  auto machine = Box();
  machine.cores = 8;
  EXPECT_THAT(PlanTable(*MakePlan(Ask(5, "far:2,localhost:3"), {}, machine)),
              HasSubstr("  OMP_NUM_THREADS: a host's usable cores / its processes, on localhost "
                        "8/3: 2 (--no-omp-threads leaves it alone)\n"));
  EXPECT_THAT(PlanTable(*MakePlan(Ask(2, "far:2"), {}, machine)),
              HasSubstr("usable cores / its processes (--no-omp-threads"));
  for (const char* own : {"OMP_NUM_THREADS=4", "HOROVOD_OMP_THREADS=0"}) {
    const std::pair<std::string, std::string> variable = absl::StrSplit(own, '=');
    EXPECT_THAT(PlanTable(*MakePlan(Ask(2, ""), {variable}, machine)),
                Not(HasSubstr("OMP_NUM_THREADS")));
  }
}

cli::Options AskElastic(int num_proc, const std::string& hosts) {
  cli::Options options = Ask(num_proc, hosts);
  options.elastic.emplace();
  options.elastic->min_workers = 1;
  return options;
}

TEST(MakePlan, ElasticJobTakesAllSlotsOfFixedHosts) {
  auto plan = MakePlan(AskElastic(2, "localhost:2,far:4"), {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_proc, 2);
  ASSERT_EQ(plan->hosts.size(), 2u);
  EXPECT_EQ(plan->hosts[1].slots, 4);
  EXPECT_GT(plan->elastic->max_workers, 6);
  EXPECT_THAT(plan->listen, ElementsAre("192.168.7.5:0", "10.0.0.5:0"));
  EXPECT_EQ(Error(AskElastic(3, "a:1,b:1")),
            "3 processes need 3 slots, but the hosts have 2: start fewer, or list more slots");
}

TEST(MakePlan, ElasticJobOfManySlotsNeedsALimit) {
  cli::Options options = AskElastic(2, "localhost:1,far:65536");
  EXPECT_EQ(Error(options),
            "host far has 65536 slots, and the job would start a process in each: limit them with "
            "--max-np (without it a host may have 1024 slots)");
  options.elastic->max_workers = 4;
  EXPECT_TRUE(MakePlan(options, {}, Box()).ok());
  EXPECT_TRUE(MakePlan(AskElastic(2, "far:1024"), {}, Box()).ok());
  options.elastic.reset();  // a static job starts -np processes
  EXPECT_TRUE(MakePlan(options, {}, Box()).ok());
}

TEST(MakePlan, ElasticJobOfThisMachineHasRoomForSpares) {
  cli::Options options = AskElastic(2, "");
  options.elastic->spec.spares = 1;
  options.elastic->max_workers = 2;
  auto plan = MakePlan(options, {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->hosts[0].slots, 3);
  EXPECT_EQ(plan->elastic->max_workers, 2);
}

TEST(MakePlan, DiscoveryScriptMakesTheDaemonReachable) {
  cli::Options options = AskElastic(2, "");
  options.elastic->script = "/bin/true";
  auto plan = MakePlan(options, {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->hosts.empty());
  EXPECT_THAT(plan->listen, ElementsAre("10.0.0.5:0", "192.168.7.5:0"));
  LocalMachine alone = Box();
  alone.interfaces.resize(1);
  EXPECT_THAT(MakePlan(options, {}, alone)->listen, ElementsAre("127.0.0.1:0"));
}

TEST(MakePlan, DiscoveryScriptIsFoundHereOrWhereCommandsAre) {
  cli::Options options = AskElastic(2, "");
  options.elastic->script = "sh";
  LocalMachine machine = Box();
  EXPECT_EQ(MakePlan(options, {{"PATH", "/bin"}}, machine)->source->name(),
            "the host discovery script /bin/sh");
  machine.working_directory = "/bin";
  EXPECT_EQ(MakePlan(options, {}, machine)->source->name(), "the host discovery script /bin/sh");
}

TEST(MakePlan, DiscoveryScriptThatCantRunIsRefused) {
  cli::Options options = AskElastic(2, "");
  options.elastic->script = "./hosts.sh";
  EXPECT_EQ(Error(options), "--host-discovery-script: ./hosts.sh does not exist");
  options.elastic->script = "hosts.sh";
  EXPECT_EQ(Error(options), "--host-discovery-script: hosts.sh does not exist");
  options.elastic->script = "/etc/passwd";
  EXPECT_EQ(Error(options),
            "--host-discovery-script: /etc/passwd is not executable; chmod +x makes it so");
  options.elastic->script = "no-such-shell hosts.sh";
  EXPECT_EQ(Error(options), "--host-discovery-script: no-such-shell does not exist");
}

TEST(MakePlan, DiscoveryScriptMayHaveArguments) {
  cli::Options options = AskElastic(2, "");
  options.elastic->script = "sh hosts.sh 'a b'";
  const auto plan = MakePlan(options, {{"PATH", "/bin"}}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->source->name(), "the host discovery script sh hosts.sh 'a b'");
}

TEST(MakePlan, DiscoveryScriptWithLineEndsOfWindows_IsRefused) {
  const std::string script = ::testing::TempDir() + "/hosts_crlf.sh";
  std::ofstream(script) << "#!/bin/sh\r\necho a:1\r\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  cli::Options options = AskElastic(2, "");
  options.elastic->script = script;
  EXPECT_THAT(Error(options), HasSubstr("hosts_crlf.sh has the line ends of Windows (CRLF); "
                                        "sed -i 's/\\r$//' removes them"));
  std::filesystem::remove(script);
}

TEST(PlanTable, ElasticListsSlotsAndBounds) {
  cli::Options options = AskElastic(3, "far:2,localhost:1");
  options.elastic->max_workers = 8;
  EXPECT_EQ(PlanTable(*MakePlan(options, {}, Box())),
            "3 processes (at least 1, at most 8): python train.py\n"
            "  2 slots          far (over ssh)\n"
            "  1 slot           localhost (this machine)\n");
}

TEST(ThisMachine, KnowsItself) {
  auto machine = ThisMachine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_FALSE(machine->host_name.empty());
  EXPECT_FALSE(machine->interfaces.empty());
  EXPECT_TRUE(MakePlanHere(Ask(2, ""), {}).ok());
}

}  // namespace
}  // namespace hvd::launcher::plan
