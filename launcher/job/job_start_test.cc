#include "launcher/job/job_start.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

plan::JobPlan TwoHosts() {
  plan::JobPlan plan;
  plan.num_proc = 3;
  plan.hosts.resize(2);
  plan.hosts[0].target.host = "a";
  plan.hosts[0].slots = 2;
  plan.hosts[1].target.host = "b";
  plan.hosts[1].slots = 1;
  plan.listen = {"10.0.0.1:0"};
  plan.command = {"python", "x.py"};
  plan.environment = {{"A", "1"}};
  plan.working_directory = "/w";
  plan.networks = {"eth0"};
  plan.start_timeout = absl::Seconds(7);
  return plan;
}

TEST(StartDaemon, AsksForExactlyThePlan) {
  rendezvous::server::ServerOptions seen;
  auto daemon = StartDaemon(
      TwoHosts(),
      [&](rendezvous::server::ServerOptions options)
          -> absl::StatusOr<std::unique_ptr<rendezvous::server::Server>> {
        seen = std::move(options);
        return nullptr;
      },
      [](const rendezvous::membership::Verdict&) {}, nullptr);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  EXPECT_EQ(seen.job_id, daemon->job_id);
  EXPECT_EQ(seen.job.min_workers, 3);
  EXPECT_EQ(seen.job.max_workers, 3);
  ASSERT_EQ(seen.job.expected_hosts.size(), 2u);
  EXPECT_EQ(seen.job.expected_hosts[0].host, "a");
  EXPECT_EQ(seen.job.expected_hosts[0].slots, 2);
  EXPECT_GT(seen.job.start_timeout, absl::Seconds(7));
  EXPECT_THAT(seen.listen, ElementsAre("10.0.0.1:0"));
  EXPECT_FALSE(seen.credentials.token.empty());
}

TEST(StartDaemon, PassesErrorsOn) {
  auto daemon = StartDaemon(
      TwoHosts(),
      [](rendezvous::server::ServerOptions)
          -> absl::StatusOr<std::unique_ptr<rendezvous::server::Server>> {
        return absl::UnavailableError("can't listen");
      },
      [](const rendezvous::membership::Verdict&) {}, nullptr);
  EXPECT_EQ(daemon.status().message(), "can't listen");
}

TEST(WriteJobFile, TellsWhereTheDaemonIs) {
  auto authority = rendezvous::security::JobAuthority::Create("job");
  ASSERT_TRUE(authority.ok());
  plan::JobPlan plan = TwoHosts();
  EXPECT_EQ(*WriteJobFile(plan, **authority, "job", {"10.0.0.1:99"}), nullptr);
  plan.job_realm = absl::StrCat("job_start_test-", getpid());
  plan.command.push_back("\xff");
  {
    auto file = WriteJobFile(plan, **authority, "job", {"10.0.0.1:99"});
    ASSERT_TRUE(file.ok()) << file.status();
    const auto jobs = RunningJobs(plan.job_realm);
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_THAT(jobs[0].addresses(), ElementsAre("10.0.0.1:99"));
    EXPECT_EQ(jobs[0].command(), "python x.py \uFFFD");
    EXPECT_THAT(jobs[0].credentials().private_key(), HasSubstr("PRIVATE KEY"));
  }
  EXPECT_TRUE(RunningJobs(plan.job_realm).empty());
}

TEST(StartDaemon, ElasticJobHasItsBoundsAndItsRules) {
  plan::JobPlan plan = TwoHosts();
  plan.elastic.emplace();
  plan.elastic->min_workers = 1;
  plan.elastic->max_workers = 8;
  plan.elastic->spec.spares = 2;
  rendezvous::policy::JobSpec seen;
  ASSERT_TRUE(StartDaemon(
                  plan,
                  [&](rendezvous::server::ServerOptions options)
                      -> absl::StatusOr<std::unique_ptr<rendezvous::server::Server>> {
                    seen = options.job;
                    return nullptr;
                  },
                  [](const rendezvous::membership::Verdict&) {}, nullptr)
                  .ok());
  EXPECT_EQ(seen.min_workers, 1);
  EXPECT_EQ(seen.start_workers, 3);
  EXPECT_EQ(seen.max_workers, 8);
  ASSERT_TRUE(seen.elastic.has_value());
  EXPECT_EQ(seen.elastic->spares, 2);
}

TEST(MakeBootstrap, HasAllThatAnAgentNeeds) {
  auto authority = rendezvous::security::JobAuthority::Create("job");
  ASSERT_TRUE(authority.ok());
  plan::JobPlan plan = TwoHosts();
  plan.worker_input = "words";
  auto bootstrap = MakeBootstrap(plan, plan.hosts[1], **authority, "job", {"10.0.0.1:99"});
  ASSERT_TRUE(bootstrap.ok()) << bootstrap.status();
  EXPECT_EQ(bootstrap->version(), kVersion);
  EXPECT_EQ(bootstrap->job_id(), "job");
  EXPECT_EQ(bootstrap->host(), "b");
  EXPECT_EQ(bootstrap->slots(), 1u);
  EXPECT_THAT(bootstrap->daemon_addresses(), ElementsAre("10.0.0.1:99"));
  EXPECT_THAT(bootstrap->command().argv(), ElementsAre("python", "x.py"));
  EXPECT_EQ(bootstrap->command().environment().at("A"), "1");
  EXPECT_EQ(bootstrap->command().working_directory(), "/w");
  EXPECT_EQ(bootstrap->command().input(), "words");
  EXPECT_THAT(bootstrap->networks(), ElementsAre("eth0"));
  EXPECT_THAT(bootstrap->credentials().private_key(), HasSubstr("PRIVATE KEY"));
  EXPECT_THAT(bootstrap->credentials().certificate(), HasSubstr("CERTIFICATE"));
}

}  // namespace
}  // namespace hvd::launcher::job
