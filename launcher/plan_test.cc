#include "launcher/plan.h"

#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Machine Box() {
  Machine machine;
  machine.host_name = "box";
  machine.interfaces = {{"lo", "127.0.0.1", false, true, true},
                        {"eth0", "10.0.0.5", false, false, true},
                        {"ib0", "192.168.7.5", false, false, true}};
  machine.working_directory = "/home/me";
  machine.resolve = [](const std::vector<std::string>&) {
    return NameTable{{"alias", {"10.0.0.5"}}, {"far", {"192.168.7.9"}}};
  };
  machine.source_towards = [](const std::string& address) {
    return address == "192.168.7.9" ? "192.168.7.5" : "";
  };
  return machine;
}

Options Ask(int num_proc, const std::string& hosts) {
  Options options;
  options.num_proc = num_proc;
  options.hosts = hosts;
  options.command = {"python", "train.py"};
  return options;
}

std::string Error(const Options& options) {
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

TEST(MakePlan, AllLocalJobDoesNotAskTheResolver) {
  Machine machine = Box();
  machine.resolve = [](const std::vector<std::string>& names) {
    ADD_FAILURE() << names[0];
    return NameTable{};
  };
  EXPECT_TRUE(MakePlan(Ask(3, "localhost:1,box:1,10.0.0.5:1"), {}, machine).ok());
}

TEST(MakePlan, RemoteHostsAreReachedOnTheInterfaceTowardsThem) {
  Options options = Ask(5, "far:2,alias:2,ssh-alias:2,unused:9");
  options.ssh_port = 2222;
  options.start_timeout = absl::Seconds(4);
  auto plan = MakePlan(options, {}, Box());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->hosts.size(), 3u);
  EXPECT_FALSE(plan->hosts[0].target.local);
  EXPECT_EQ(plan->hosts[0].target.ssh.port, 2222);
  EXPECT_EQ(plan->hosts[0].target.ssh.connect_timeout_seconds, 4);
  EXPECT_TRUE(plan->hosts[1].target.local);
  EXPECT_FALSE(plan->hosts[2].target.local);
  EXPECT_EQ(plan->hosts[2].slots, 1);
  EXPECT_EQ(plan->hosts[2].first_rank, 4);
  EXPECT_THAT(plan->listen, ElementsAre("192.168.7.5:0", "10.0.0.5:0"));
}

TEST(MakePlan, HostfileIsRead) {
  const std::string file = ::testing::TempDir() + "/plan_test_hosts";
  std::ofstream(file) << "localhost slots=2\n";
  Options options = Ask(2, "");
  options.hostfile = file;
  auto plan = MakePlan(options, {}, Box());
  EXPECT_TRUE(plan.ok()) << plan.status();
  options.num_proc = 3;
  EXPECT_EQ(Error(options), "Requested more processes (3) than there are available slots (2)");
  std::remove(file.c_str());
}

TEST(MakePlan, MistakesAreFoundBeforeAnythingStarts) {
  EXPECT_EQ(Error(Ask(3, "a:1,b:1")),
            "Requested more processes (3) than there are available slots (2)");
  EXPECT_THAT(Error(Ask(1, "a:0")), HasSubstr("-H: host a: 0 slots"));
  Options options = Ask(1, "");
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

TEST(ThisMachine, KnowsItself) {
  auto machine = ThisMachine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_FALSE(machine->host_name.empty());
  EXPECT_FALSE(machine->interfaces.empty());
  EXPECT_TRUE(MakePlanHere(Ask(2, ""), {}).ok());
}

}  // namespace
}  // namespace hvd
