#include "launcher/dry_run.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/discovery/host_script.h"
#include "launcher/spawn/ssh_launcher.h"

namespace hvd::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

plan::JobPlan Plan(std::vector<plan::PlannedHost> hosts) {
  plan::JobPlan plan;
  plan.hosts = std::move(hosts);
  plan.launcher = std::make_shared<spawn::SshLauncher>(spawn::SshOptions());
  for (plan::PlannedHost& host : plan.hosts) {
    plan.num_proc += host.slots;
    host.target.launcher = plan.launcher;
  }
  plan.source =
      std::make_shared<discovery::FixedHosts>(std::vector<rendezvous::membership::HostSlots>());
  plan.command = {"python", "train.py"};
  plan.working_directory = "/home/me";
  plan.listen = {"10.0.0.1"};
  plan.environment = cli::WorkerEnvironment({}, {}, {});
  return plan;
}

TEST(DryRunText, StaticJob_ShowsEveryRanksPlace) {
  const std::string text =
      DryRunText(Plan({{{"a", true, {}}, 2, 0}, {{"b", false, {}}, 1, 2}}), {});
  EXPECT_THAT(text, HasSubstr("3 processes: python train.py"));
  EXPECT_THAT(text, HasSubstr("     0           0           2           0           2  a\n"
                              "     1           1           2           0           1  a\n"
                              "     2           0           1           1           2  b\n"));
  EXPECT_THAT(text, HasSubstr("10.0.0.1"));
  EXPECT_THAT(text, HasSubstr("/home/me"));
  EXPECT_THAT(text, HasSubstr("Not checked: that the hosts can be reached with ssh"));
}

TEST(DryRunText, ThisMachineAlone_NeedsNoSsh) {
  EXPECT_THAT(DryRunText(Plan({{{"a", true, {}}, 2, 0}}), {}), Not(HasSubstr("ssh")));
}

TEST(DryRunText, Variables_AreShownWithoutTheUsersValues) {
  cli::Options options;
  options.tunables = {{"HOROVOD_CYCLE_TIME", "5"}};
  options.exports = {{"TOKEN", "secret"}};
  const std::string text = DryRunText(Plan({{{"a", true, {}}, 1, 0}}), options);
  EXPECT_THAT(text, HasSubstr("HOROVOD_CYCLE_TIME=5\n"));
  EXPECT_THAT(text, HasSubstr("TOKEN (from -x"));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(DryRunText, ElasticJobWithScript_SaysThatItWasNotRun) {
  plan::JobPlan plan = Plan({});
  plan.elastic.emplace();
  plan.source = std::make_shared<discovery::HostScript>(
      discovery::HostScriptOptions{"/bin/hosts", 0, {}, {}});
  const std::string text = DryRunText(plan, {});
  EXPECT_THAT(text,
              HasSubstr("Not checked: which hosts the host discovery script /bin/hosts finds"));
  EXPECT_THAT(text, Not(HasSubstr("local_rank")));
}

}  // namespace
}  // namespace hvd::launcher
