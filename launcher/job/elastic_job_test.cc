// Tests of RunJob with elastic jobs, whose hosts change.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/job/job.h"
#include "launcher/job/job_test_util.h"

namespace hvd::launcher::job {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ElasticJobTest = JobTest;

TEST_F(ElasticJobTest, DiscoveredHostsGetAgentsAndTheDaemonLearnsOfChanges) {
  MakeElastic();
  ThenFound({"alpha", "beta"});
  ThenFound({"alpha", "beta"});
  ThenFound({"alpha", "beta", "gamma"});
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(agents_.size(), 3u);
  EXPECT_EQ(agents_["gamma"].bootstrap.slots(), 2u);
  ASSERT_EQ(daemon_.reports.size(), 2u);
  EXPECT_EQ(daemon_.reports[0].size(), 2u);
  EXPECT_EQ(daemon_.reports[1].size(), 3u);
  EXPECT_EQ(searches_, 0);
}

TEST_F(ElasticJobTest, FixedHostsAreReportedAtTheStart) {
  MakeElastic();
  plan_.source =
      std::make_shared<discovery::FixedHosts>(std::vector<rendezvous::membership::HostSlots>());
  ThenAllReady();
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  ASSERT_EQ(daemon_.reports.size(), 1u);
  EXPECT_EQ(daemon_.reports[0][0].host, "alpha");
  EXPECT_EQ(agents_.size(), 2u);
}

// The survivor is rank 0 of the next world, and prints what rank 0 prints.
TEST_F(ElasticJobTest, RanksFilterFollowsTheRanksOfWorlds) {
  MakeElastic();
  plan_.shown_ranks = {{0, 0}};
  const auto say = [this](uint64_t worker, int start_rank, const std::string& line) {
    Then([=] {
      pb::WorkerOutput output;
      output.set_worker_id(worker);
      output.set_rank(start_rank);
      output.set_line(line + "\n");
      agents_["alpha"].callbacks.on_output(std::move(output));
    });
  };
  const auto form = [this](std::vector<std::pair<uint64_t, int>> ranks) {
    Then([this, ranks] {
      daemon_.view.hosts.assign(1, {});
      for (const auto& [worker, rank] : ranks) {
        daemon_.view.hosts[0].workers.push_back({WorkerId(worker), rank});
      }
    });
    ThenNotice(rendezvous::membership::Notice::Kind::kWorldFormed, "formed", -1, 2);
  };
  ThenFound({"alpha", "beta"});
  ThenAllReady();
  say(1, 0, "before a world");
  say(2, 1, "hidden");
  form({{1, 0}, {2, 1}});
  say(2, 1, "hidden");
  form({{2, 0}, {3, 1}});
  say(2, 1, "new rank 0");
  say(3, 0, "hidden");
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stdout_, "[0]<stdout>:before a world\n[1]<stdout>:new rank 0\n");
}

TEST_F(ElasticJobTest, LostAgentIsWarnedOfOnceAndStartedAgain) {
  MakeElastic();
  ThenFound({"alpha", "beta"});
  ThenAllReady();
  for (int i = 0; i < 3; ++i) {
    Then([this] { agents_.Exit("beta", {255, 0, "Connection to beta closed.\n"}); });
    Then([this] { EXPECT_TRUE(agents_["beta"].exited); });
    ThenTimePasses();  // the pause
    Then([this] {
      EXPECT_FALSE(agents_["beta"].exited);
      agents_.Ready("beta");
    });
  }
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(stderr_, ::testing::StartsWith("horovodrun: warning: "));
  EXPECT_THAT(stderr_, HasSubstr("Connection to beta closed.; trying again"));
  EXPECT_EQ(stderr_.find('\n'), stderr_.size() - 1);
  EXPECT_TRUE(daemon_.stops.empty());
}

TEST_F(ElasticJobTest, HostThatRefusesIsNotTheJobsEnd) {
  MakeElastic();
  ThenFound({"alpha", "beta"});
  Then([this] {
    agents_.Ready("alpha");
    Attach("alpha");
    agents_["beta"].callbacks.on_refusal("command 'python' not found");
    agents_.Exit("beta", {2, 0, ""});
  });
  ThenTimePasses();
  Then([this] { EXPECT_FALSE(agents_["beta"].exited); });
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_,
            "horovodrun: warning: beta: command 'python' not found; trying again while it is "
            "listed\n");
}

TEST_F(ElasticJobTest, RefusedByAllHosts_EndsAtOnce) {
  MakeElastic();
  plan_.source =
      std::make_shared<discovery::FixedHosts>(std::vector<rendezvous::membership::HostSlots>());
  Then([this] {
    for (const char* host : {"alpha", "beta"}) {
      agents_[host].callbacks.on_refusal("command 'pyton' not found");
      agents_.Exit(host, {2, 0, ""});
    }
  });
  const absl::Time before = clock_.Now();
  EXPECT_EQ(Run(), 2);
  EXPECT_EQ(clock_.Now(), before);
  EXPECT_THAT(stderr_, HasSubstr("horovodrun: error: alpha: command 'pyton' not found; beta: "));
  EXPECT_THAT(stderr_, ::testing::Not(HasSubstr("warning: beta")));
}

TEST_F(ElasticJobTest, NoHostUsableInTime_NamesEachAndWhy) {
  MakeElastic();
  ThenFound({"alpha", "beta"});
  Then([this] {
    agents_["beta"].stubborn = true;
    agents_.Exit("alpha", {255, 0, "ssh: connect to host alpha port 22: No route to host\r\n"});
  });
  const absl::Time before = clock_.Now();
  EXPECT_EQ(Run(), 2);
  EXPECT_GE(clock_.Now() - before, plan_.start_timeout);
  EXPECT_THAT(stderr_, HasSubstr("error: gave up after 30s of waiting for alpha: the host can't"));
  EXPECT_THAT(stderr_, HasSubstr("; beta: no answer yet; --start-timeout"));
}

TEST_F(ElasticJobTest, NoHostsYet_IsReported) {
  MakeElastic();
  daemon_.view.waits_for = rendezvous::membership::Membership::Wait::kHosts;
  daemon_.view.explanation = "waiting for more hosts to attach (0 of 4 slots)";
  daemon_.view.waits_until = clock_.Now() + absl::Seconds(35);
  ThenFound({});
  ThenTimePasses();
  ThenFound({"alpha"});
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_,
            "horovodrun: waiting for more hosts to attach (0 of 4 slots); /hosts.sh lists no other "
            "host; this wait ends in 32s at the latest\n");
}

TEST_F(ElasticJobTest, FlappingDiscoveryIsWarnedOfOncePerKind) {
  MakeElastic();
  ThenFound({"alpha"});
  for (int i = 0; i < 3; ++i) {
    ThenSearchFails(absl::FailedPreconditionError("it failed"));
    ThenFound({"alpha"});
    ThenSearchFails(absl::InvalidArgumentError("it printed rubbish"));
  }
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_,
            "horovodrun: warning: it failed; the hosts known so far stay\n"
            "horovodrun: warning: it printed rubbish; the hosts known so far stay\n");
}

TEST_F(ElasticJobTest, NoHostsYet_JobContinues) {
  MakeElastic();
  ThenFound({});
  ThenTimePasses();
  ThenFound({"alpha"});
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(agents_.size(), 1u);
}

TEST_F(ElasticJobTest, HostGoesBeforeItsAgentAttached_AgentIsEnded) {
  MakeElastic();
  ThenFound({"alpha", "beta"});
  Then([this] {
    agents_["beta"].stubborn = true;
    agents_.Ready("alpha");
    Attach("alpha");
  });
  ThenFound({"alpha"});
  Then([this] {
    EXPECT_TRUE(agents_["beta"].killed);
    EXPECT_FALSE(agents_["alpha"].input_closed);
  });
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_, "");
}

TEST_F(ElasticJobTest, DrainedHostReturnsWhenListedAgain) {
  MakeElastic();
  ThenFound({"alpha", "beta"});
  ThenAllReady();
  ThenFound({"alpha"});
  Then([this] {
    EXPECT_FALSE(agents_["beta"].input_closed);  // the daemon ends it
    agents_.Exit("beta");
  });
  ThenFound({"alpha"});
  Then([this] { EXPECT_TRUE(agents_["beta"].exited); });
  ThenFound({"alpha", "beta"});
  Then([this] { EXPECT_FALSE(agents_["beta"].exited); });
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_, "");
}

TEST_F(ElasticJobTest, FirstDiscoveryFails_IsAnError) {
  MakeElastic();
  ThenSearchFails(absl::FailedPreconditionError("the script failed with exit code 3"));
  EXPECT_EQ(Run(), 2);
  EXPECT_EQ(stderr_, "horovodrun: error: the script failed with exit code 3\n");
  EXPECT_EQ(agents_.size(), 0u);
}

TEST_F(ElasticJobTest, LaterDiscoveryFails_HostsStayAndOneWarningIsGiven) {
  MakeElastic();
  ThenFound({"alpha"});
  Then([this] { Attach("alpha"); });
  ThenSearchFails(absl::FailedPreconditionError("exit code 3"));
  ThenSearchFails(absl::FailedPreconditionError("exit code 4"));
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_, "horovodrun: warning: exit code 3; the hosts known so far stay\n");
  EXPECT_FALSE(agents_["alpha"].input_closed);
}

TEST_F(ElasticJobTest, SigtermDrainsAllHostsBeforeTheEnd) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenWorkersOf("alpha", 2);
  ThenSignal(SIGTERM);
  Then([this] {
    EXPECT_EQ(daemon_.reports.size(), 1u);
    ASSERT_EQ(daemon_.ends_at_commit.size(), 1u);
    EXPECT_EQ(daemon_.ends_at_commit[0].exit_code, 143);
    EXPECT_EQ(daemon_.ends_at_commit[0].grace, absl::Seconds(30));
    EXPECT_EQ(searches_, 0);
  });
  ThenNotice(rendezvous::membership::Notice::Kind::kJobEnding, "the job ends: SIGTERM");
  ThenVerdict(Stopped());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 143);
  EXPECT_TRUE(daemon_.stops.empty());
  EXPECT_THAT(stderr_, Not(HasSubstr("the job ends"))) << "told before";
  EXPECT_THAT(stderr_, HasSubstr("interrupted by SIGTERM; all workers leave at their next commit, "
                                 "within 30s"));
}

// A terminal that is closed sends SIGHUP, and takes the reader of the output with it.
TEST_F(ElasticJobTest, ClosedTerminalDrainsAllHosts) {
  for (const bool signal_comes_first : {true, false}) {
    MakeElastic();
    ThenFound({"alpha"});
    ThenWorkersOf("alpha", 2);
    if (signal_comes_first) ThenSignal(SIGHUP);
    Then([this] { events_.Post(OutputIsBroken{false, EIO}); });
    if (!signal_comes_first) ThenSignal(SIGHUP);
    const int code = signal_comes_first ? 128 + SIGHUP : 128 + SIGPIPE;
    Then([this, code] {
      ASSERT_EQ(daemon_.ends_at_commit.size(), 1u);
      EXPECT_EQ(daemon_.ends_at_commit[0].exit_code, code);
    });
    rendezvous::membership::Verdict stopped = Stopped();
    stopped.exit_code = code;
    ThenVerdict(stopped);
    ThenAgentsExit();
    EXPECT_EQ(Run(), code);
    EXPECT_TRUE(daemon_.stops.empty());
    daemon_ = FakeJobDaemon();
  }
}

TEST_F(ElasticJobTest, OutputThatIsLostDrainsAllHosts) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenWorkersOf("alpha", 2);
  Then([this] { events_.Post(OutputIsBroken{false, ENOSPC}); });
  Then([this] {
    ASSERT_EQ(daemon_.ends_at_commit.size(), 1u);
    EXPECT_EQ(daemon_.ends_at_commit[0].exit_code, 1);
  });
  rendezvous::membership::Verdict stopped = Stopped();
  stopped.exit_code = 1;
  ThenVerdict(stopped);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 1);
  EXPECT_TRUE(daemon_.stops.empty());
  EXPECT_THAT(stderr_,
              HasSubstr("can't write to stdout: No space left on device; all workers leave "
                        "at their next commit"));
}

TEST_F(ElasticJobTest, OutputIsLost_TrainingEndsBeforeTheDrain_JobFails) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenWorkersOf("alpha", 2);
  Then([this] { events_.Post(OutputIsBroken{false, ENOSPC}); });
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 1);
}

// Between the end of the training and that of its processes, or before the first world.
TEST_F(ElasticJobTest, SigtermWhileNobodyTrains_TheDaemonDecides) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenSignal(SIGTERM);
  Then([this] { EXPECT_EQ(daemon_.ends_at_commit.size(), 1u); });
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_TRUE(daemon_.stops.empty());
  EXPECT_THAT(stderr_, HasSubstr("no rank is in training, and all processes end within 30s"));
}

TEST_F(ElasticJobTest, TrainingEndsDuringTheDrain_ItsVerdictCounts) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenWorkersOf("alpha", 2);
  ThenSignal(SIGTERM);
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
}

TEST_F(ElasticJobTest, DaemonIsAskedToEnd_NoAgentIsStartedAnyMore) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenWorkersOf("alpha", 2);
  ThenNotice(rendezvous::membership::Notice::Kind::kJobEnding, "the job ends: horovodrun stop");
  Then([this] { EXPECT_EQ(searches_, 0); });
  ThenVerdict(Stopped());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 143);
  EXPECT_EQ(stderr_, "horovodrun: the job ends: horovodrun stop\n");
  EXPECT_TRUE(daemon_.stops.empty());
}

TEST_F(ElasticJobTest, SecondSignalAndLateWorkersEndTheDrain) {
  for (const bool second_signal : {true, false}) {
    MakeElastic();
    ThenFound({"alpha"});
    ThenWorkersOf("alpha", 2);
    ThenSignal(SIGTERM);
    if (second_signal) ThenSignal(SIGINT);
    if (!second_signal) ThenTimePasses();
    ThenAgentsExit();
    EXPECT_EQ(Run(), second_signal ? 130 : 143);
    ASSERT_EQ(daemon_.stops.size(), 1u);
    EXPECT_EQ(daemon_.stops[0].grace, absl::ZeroDuration());
    daemon_ = FakeJobDaemon();
  }
}

TEST_F(ElasticJobTest, NoticesArePrintedAndSummedUp) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenNotice(rendezvous::membership::Notice::Kind::kHostJoined, "host alpha joined");
  ThenNotice(rendezvous::membership::Notice::Kind::kWorldFormed, "world of 4 workers formed", -1,
             4);
  ThenNotice(rendezvous::membership::Notice::Kind::kWorkerFailed,
             "rank 1 on host alpha failed: exit code 3", 1);
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_,
            "horovodrun: world of 4 workers formed (world 7)\n"
            "horovodrun: rank 1 on host alpha failed: exit code 3; going on with 3 workers\n"
            "horovodrun: 4 ranks finished; 1 world; 1 failure (1 x exit code 3)\n");
}

}  // namespace
}  // namespace hvd::launcher::job
