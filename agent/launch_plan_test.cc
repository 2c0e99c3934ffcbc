#include "agent/launch_plan.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

pb::AgentBootstrap Bootstrap(const std::string& program) {
  pb::AgentBootstrap bootstrap;
  bootstrap.set_version(kVersion);
  bootstrap.set_host("node7");
  bootstrap.mutable_command()->add_argv(program);
  bootstrap.mutable_command()->add_argv("train.py");
  bootstrap.mutable_command()->set_working_directory("/usr");
  (*bootstrap.mutable_command()->mutable_environment())["PATH"] = "/bin";
  return bootstrap;
}

TEST(LaunchPlanTest, MakeLaunchPlan_CommandInPath_IsFound) {
  const LaunchPlan plan = MakeLaunchPlan(Bootstrap("sh")).value();
  EXPECT_EQ(plan.file, "/bin/sh");
  EXPECT_EQ(plan.argv, (std::vector<std::string>{"sh", "train.py"}));
  EXPECT_EQ(plan.working_directory, "/usr");
  EXPECT_EQ(plan.warning, "");
}

TEST(LaunchPlanTest, MakeLaunchPlan_CommandThatRestarts_IsRunByTheAgentsProgram) {
  pb::AgentBootstrap bootstrap = Bootstrap("sh");
  bootstrap.mutable_command()->set_restarts(true);
  const LaunchPlan plan = MakeLaunchPlan(bootstrap).value();
  EXPECT_EQ(plan.file, std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(plan.argv, (std::vector<std::string>{"horovod-agent", "--restarter", "/bin/sh", "sh",
                                                 "train.py"}));
  *bootstrap.mutable_command()->mutable_argv(0) = "no-such-command";
  EXPECT_THAT(MakeLaunchPlan(bootstrap).status().message(), testing::HasSubstr("no-such-command"));
}

TEST(LaunchPlanTest, MakeLaunchPlan_GpusOfTheAgent_AreThoseOfItsWorkers) {
  pb::AgentBootstrap bootstrap = Bootstrap("sh");
  const Environment own = {{"CUDA_VISIBLE_DEVICES", "2,3"}, {"SECRET", "1"}};
  const LaunchPlan plan = MakeLaunchPlan(bootstrap, own).value();
  EXPECT_EQ(plan.environment.at("CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(plan.environment.count("SECRET"), 0u);
  (*bootstrap.mutable_command()->mutable_environment())["CUDA_VISIBLE_DEVICES"] = "0";
  EXPECT_EQ(MakeLaunchPlan(bootstrap, own)->environment.at("CUDA_VISIBLE_DEVICES"), "0");
}

TEST(LaunchPlanTest, MakeLaunchPlan_RelativePath_IsTakenFromTheJobsDirectory) {
  EXPECT_EQ(MakeLaunchPlan(Bootstrap("./bin/sh"))->file, "/usr/./bin/sh");
}

TEST(LaunchPlanTest, MakeLaunchPlan_NoSuchCommand_NamesHostAndCommand) {
  const absl::Status status = MakeLaunchPlan(Bootstrap("pyhton")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "node7: command not found: pyhton (PATH there: /bin)");
}

TEST(LaunchPlanTest, MakeLaunchPlan_PythonScript_SaysHowToRunIt) {
  EXPECT_EQ(MakeLaunchPlan(Bootstrap("train.py")).status().message(),
            "node7: command not found: train.py (PATH there: /bin); to run a Python script, write: "
            "python train.py");
}

TEST(LaunchPlanTest, MakeLaunchPlan_WildName_IsOneShortLine) {
  const absl::Status status =
      MakeLaunchPlan(Bootstrap("a\n\033[2J" + std::string(100000, 'x'))).status();
  EXPECT_LT(status.message().size(), 500u);
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  EXPECT_EQ(status.message().find('\033'), absl::string_view::npos);
}

TEST(LaunchPlanTest, MakeLaunchPlan_NotExecutable_IsPermissionDenied) {
  const absl::Status status = MakeLaunchPlan(Bootstrap("/etc/passwd")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("node7: not an executable file: /etc/passwd"),
            absl::string_view::npos);
}

TEST(LaunchPlanTest, MakeLaunchPlan_OtherVersion_NamesBoth) {
  pb::AgentBootstrap bootstrap = Bootstrap("sh");
  bootstrap.set_version("0.9");
  const absl::Status status = MakeLaunchPlan(bootstrap).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("0.9"), absl::string_view::npos);
  EXPECT_NE(status.message().find(kVersion), absl::string_view::npos);
}

TEST(LaunchPlanTest, MakeLaunchPlan_NoCommand_IsInvalidArgument) {
  pb::AgentBootstrap bootstrap = Bootstrap("sh");
  bootstrap.mutable_command()->clear_argv();
  EXPECT_EQ(MakeLaunchPlan(bootstrap).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(LaunchPlanTest, MakeLaunchPlan_NoSuchDirectory_WarnsAndUsesHome) {
  pb::AgentBootstrap bootstrap = Bootstrap("sh");
  bootstrap.mutable_command()->set_working_directory("/nonexistent/project");
  (*bootstrap.mutable_command()->mutable_environment())["HOME"] = "/usr";
  const LaunchPlan plan = MakeLaunchPlan(bootstrap).value();
  EXPECT_EQ(plan.working_directory, "/usr");
  EXPECT_EQ(plan.warning,
            "node7: there is no directory /nonexistent/project here; workers start in /usr");
}

TEST(LaunchPlanTest, WorkerEnvironment_Always_HasTheJobsAndTheWorkersVariables) {
  const LaunchPlan plan = MakeLaunchPlan(Bootstrap("sh")).value();
  pb::StartWorker start;
  start.set_worker_id(9);
  start.mutable_placement()->set_rank(3);
  start.mutable_placement()->set_size(4);
  start.mutable_placement()->set_local_rank(1);
  start.mutable_placement()->set_local_size(2);
  start.mutable_placement()->set_cross_rank(1);
  start.mutable_placement()->set_cross_size(2);
  const std::vector<std::string> entries = AsEntries(
      WorkerEnvironment(plan, start, {"[::1]:4000", "10.0.0.2", "socket", false, "eth3", "word"}));
  for (const char* entry :
       {"PATH=/bin", "HOROVOD_HOSTNAME=node7", "HOROVOD_RANK=3", "HOROVOD_SIZE=4",
        "HOROVOD_LOCAL_RANK=1", "HOROVOD_LOCAL_SIZE=2", "HOROVOD_CROSS_RANK=1",
        "HOROVOD_CROSS_SIZE=2", "HOROVOD_GLOO_RENDEZVOUS_ADDR=::1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT=4000", "HOROVOD_CONTROLLER=gloo", "HOROVOD_GLOO_IFACE=eth3",
        "NCCL_SOCKET_IFNAME=eth3", "HOROVOD_WORKER_ID=9", "HOROVOD_AGENT_SOCKET=socket",
        "HOROVOD_WORKER_WORD=word", "HOROVOD_HOST_ADDRESS=10.0.0.2", "GLOO_SOCKET_IFNAME=eth3"}) {
    EXPECT_EQ(std::count(entries.begin(), entries.end(), entry), 1) << entry;
  }
  EXPECT_EQ(entries.size(), 18u);
}

TEST(LaunchPlanTest, WorkerEnvironment_StoreOfTorch_TheUsersOwnStays) {
  LaunchPlan plan;
  WorkerPlace place;
  place.job_id = "job7";
  plan.environment = {{"MASTER_PORT", "29500"}, {"RANK", "7"}};
  pb::StartWorker start;
  start.mutable_placement()->set_rank(3);
  start.mutable_torch()->set_groups(1);
  start.mutable_torch()->set_store_address("[fe80::1]:4321");
  EXPECT_THAT(AsEntries(WorkerEnvironment(plan, start, place)),
              testing::IsSupersetOf({"MASTER_ADDR=fe80::1", "MASTER_PORT=29500", "RANK=3",
                                     "TORCHELASTIC_RUN_ID=horovod-job7"}));
  plan.environment = {{"MASTER_PORT", ""}};
  EXPECT_THAT(AsEntries(WorkerEnvironment(plan, start, place)),
              testing::Contains("MASTER_PORT=4321"));
  plan.environment = {{"HOROVOD_TORCH_ENV", "0"}};
  for (const std::string& entry : AsEntries(WorkerEnvironment(plan, start, place))) {
    EXPECT_NE(entry.rfind("MASTER_PORT=", 0), 0u);
    EXPECT_NE(entry.rfind("RANK=", 0), 0u);
  }
}

std::vector<std::string> ThreadsWith(const std::map<std::string, std::string>& own, int cores,
                                     int workers, int most = 0, int own_workers = 0) {
  pb::AgentBootstrap bootstrap = Bootstrap("sh");
  bootstrap.mutable_command()->mutable_environment()->insert(own.begin(), own.end());
  pb::StartWorker start;
  start.mutable_placement()->set_local_size(workers);
  start.set_most_on_machine(most);
  std::vector<std::string> entries = AsEntries(
      WorkerEnvironment(MakeLaunchPlan(bootstrap).value(), start,
                        {"[::1]:4000", "10.0.0.2", "socket", false, "", "", cores, own_workers}));
  const auto is_other = [](const std::string& entry) {
    return entry.rfind("OMP_NUM_THREADS=", 0) != 0;
  };
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_other), entries.end());
  return entries;
}

TEST(LaunchPlanTest, WorkerEnvironment_WorkersShareTheHostsCores) {
  using Entries = std::vector<std::string>;
  EXPECT_EQ(ThreadsWith({}, 8, 2), Entries{"OMP_NUM_THREADS=4"});
  EXPECT_EQ(ThreadsWith({}, 2, 4), Entries{"OMP_NUM_THREADS=1"});
  EXPECT_EQ(ThreadsWith({}, 0, 4), Entries{});
}

TEST(LaunchPlanTest, WorkerEnvironment_AloneForNow_LeavesTheOthersTheirShares) {
  EXPECT_EQ(ThreadsWith({}, 8, /*workers=*/1, /*most=*/4),
            std::vector<std::string>{"OMP_NUM_THREADS=2"});
}

TEST(LaunchPlanTest, WorkerEnvironment_CoresOfTheAgentAlone_AreSharedByItsOwnWorkers) {
  using Entries = std::vector<std::string>;
  EXPECT_EQ(ThreadsWith({}, 8, /*workers=*/4, 0, /*own_workers=*/2), Entries{"OMP_NUM_THREADS=4"});
  EXPECT_EQ(ThreadsWith({}, 8, 1, /*most=*/4, /*own_workers=*/2), Entries{"OMP_NUM_THREADS=4"});
  EXPECT_EQ(ThreadsWith({}, 8, /*workers=*/2, 0, /*own_workers=*/4), Entries{"OMP_NUM_THREADS=4"});
}

TEST(LaunchPlanTest, WorkerEnvironment_UsersOwnThreadsStay) {
  using Entries = std::vector<std::string>;
  EXPECT_EQ(ThreadsWith({{"OMP_NUM_THREADS", "7"}}, 8, 2), Entries{"OMP_NUM_THREADS=7"});
  EXPECT_EQ(ThreadsWith({{"HOROVOD_OMP_THREADS", "0"}}, 8, 2), Entries{});
  EXPECT_EQ(ThreadsWith({{"HOROVOD_OMP_THREADS", "1"}}, 8, 2), Entries{"OMP_NUM_THREADS=4"});
}

TEST(LaunchPlanTest, WorkerEnvironment_WithTheUsersInterfaceForNccl_KeepsIt) {
  pb::AgentBootstrap bootstrap = Bootstrap("sh");
  (*bootstrap.mutable_command()->mutable_environment())["NCCL_SOCKET_IFNAME"] = "ib0";
  const LaunchPlan plan = MakeLaunchPlan(bootstrap).value();
  const auto entries = AsEntries(WorkerEnvironment(
      plan, pb::StartWorker(), {"[::1]:4000", "10.0.0.2", "socket", false, "eth3", "word"}));
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "NCCL_SOCKET_IFNAME=ib0"), 1);
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "NCCL_SOCKET_IFNAME=eth3"), 0);
}

}  // namespace
}  // namespace hvd::agent
