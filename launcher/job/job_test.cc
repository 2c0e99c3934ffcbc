#include "launcher/job/job.h"

#include <csignal>
#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/job/job_test_util.h"

namespace hvd::launcher::job {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSentence[] = "Horovod ended the job because";

TEST_F(JobTest, SuccessIsQuiet) {
  ThenAllReady();
  Then([this] {
    pb::WorkerOutput line;
    line.set_rank(2);
    line.set_line("epoch 1\n");
    agents_["beta"].callbacks.on_output(line);
  });
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stdout_, "[2]<stdout>:epoch 1\n");
  EXPECT_EQ(stderr_, "");
  EXPECT_TRUE(daemon_.stops.empty());
  EXPECT_FALSE(agents_["alpha"].killed || agents_["alpha"].input_closed);
}

TEST_F(JobTest, FailureGivesItsCodeAndOneBlock) {
  ThenAllReady();
  ThenVerdict(Failure(3));
  ThenAgentsExit();
  EXPECT_EQ(Run(), 3);
  EXPECT_THAT(stderr_, HasSubstr("Process name: 3\nExit code: 3\n"));
  EXPECT_EQ(stderr_.find(kSentence), stderr_.rfind(kSentence));
}

TEST_F(JobTest, LastOutputComesBeforeTheBlock) {
  ThenAllReady();
  ThenVerdict(Failure(3));
  Then([this] {
    pb::WorkerOutput line;
    line.set_is_stderr(true);
    line.set_line("last words\n");
    agents_["alpha"].callbacks.on_output(line);
    agents_.ExitAll();
  });
  EXPECT_EQ(Run(), 3);
  EXPECT_LT(stderr_.find("last words"), stderr_.find(kSentence));
}

TEST_F(JobTest, AgentThatEndsEarlyIsExplainedInOneLine) {
  Then([this] { agents_.Ready("alpha"); });
  Then([this] {
    agents_.Exit("beta", {255, 0, "ssh: Could not resolve hostname beta: Name not known\r\n"});
  });
  EXPECT_EQ(Run(), 2);
  EXPECT_THAT(stderr_, ::testing::StartsWith("horovodrun: error: "));
  EXPECT_THAT(stderr_, HasSubstr("beta"));
  EXPECT_EQ(stderr_.find('\n'), stderr_.size() - 1);
  EXPECT_TRUE(agents_["alpha"].input_closed);
}

TEST_F(JobTest, WarningOfAnAgentIsShownOnce) {
  Then([this] { agents_.Ready("alpha", "alpha: there is no directory /data here"); });
  ThenAllReady();
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_, "horovodrun: warning: alpha: there is no directory /data here\n");
}

TEST_F(JobTest, RefusalNamesItsHost) {
  Then([this] { agents_["beta"].callbacks.on_refusal("command 'pyton' not found"); });
  EXPECT_EQ(Run(), 2);
  EXPECT_EQ(stderr_, "horovodrun: error: beta: command 'pyton' not found\n");
  EXPECT_TRUE(agents_["alpha"].killed || agents_["alpha"].input_closed);
}

TEST_F(JobTest, ControlCharactersOfAnAgentAreEscaped) {
  Then([this] { agents_.Ready("alpha", "alpha: \x1b[2J"); });
  Then([this] { agents_["beta"].callbacks.on_refusal("\x1b]0;title\x07\nhorovodrun: done"); });
  EXPECT_EQ(Run(), 2);
  EXPECT_EQ(stderr_, R"(horovodrun: warning: alpha: \x1b[2J
horovodrun: error: beta: \x1b]0;title\x07\nhorovodrun: done
)");
}

TEST_F(JobTest, StartTimeoutNamesLateHostsAndTheirStates) {
  Then([this] { agents_.Ready("alpha"); });
  EXPECT_EQ(Run(), 2);
  EXPECT_EQ(
      stderr_,
      "horovodrun: error: gave up after 30s of waiting for alpha (its agent runs, but has not "
      "reached this machine at 127.0.0.1:4711; is there a firewall between?), beta (no answer "
      "through ssh yet); --start-timeout gives more time\n");
}

TEST_F(JobTest, MetricsAreServedWhereItSays) {
  plan_.metrics = "127.0.0.1:0";
  ThenAllReady();
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(stderr_, ::testing::StartsWith("horovodrun: metrics at http://127.0.0.1:"));
}

TEST_F(JobTest, MetricsThatCantBeServedAreBadInput) {
  plan_.metrics = "localhost";
  EXPECT_EQ(Run(), 2);
  EXPECT_THAT(stderr_, ::testing::StartsWith("horovodrun: error: --metrics: "));
  EXPECT_EQ(agents_.size(), 0u);
}

TEST_F(JobTest, AwaitedHostIsReported) {
  daemon_.view.waits_for = rendezvous::membership::Membership::Wait::kHosts;
  daemon_.view.explanation = "waiting for host beta to attach";
  Then([this] {
    agents_.Ready("alpha");
    Attach("alpha");
  });
  ThenTimePasses();
  Then([this] {
    agents_.Ready("beta");
    Attach("beta");
    daemon_.view.waits_for = rendezvous::membership::Membership::Wait::kNothing;
  });
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_,
            "horovodrun: waiting for beta (no answer through ssh yet); this wait ends in 27s at "
            "the latest\n");
}

TEST_F(JobTest, StartTimeoutDoesNotConcernARunningJob) {
  ThenAllReady();
  ThenTimePasses();
  ThenVerdict(Success());
  ThenAgentsExit();
  const absl::Time before = clock_.Now();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(clock_.Now() - before, plan_.start_timeout);
  EXPECT_TRUE(daemon_.stops.empty());
}

TEST_F(JobTest, CtrlCStopsWithFiveSecondsOfGrace) {
  ThenAllReady();
  ThenSignal(SIGINT);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 130);
  ASSERT_EQ(daemon_.stops.size(), 1u);
  EXPECT_EQ(daemon_.stops[0].exit_code, 130);
  EXPECT_EQ(daemon_.stops[0].grace, absl::Seconds(5));
  EXPECT_THAT(stderr_, HasSubstr("stopping 4 processes (Ctrl-C again to kill at once)"));
  EXPECT_THAT(stderr_, Not(HasSubstr(kSentence)));
  EXPECT_FALSE(agents_["alpha"].killed);
}

TEST_F(JobTest, OtherStopSignalsHaveTheirCodes) {
  ThenAllReady();
  ThenSignal(SIGTERM);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 143);
  EXPECT_THAT(stderr_, ::testing::StartsWith("horovodrun: interrupted by SIGTERM; stopping"));
}

TEST_F(JobTest, DaemonIsAskedToEnd_ItsVerdictIsTheExitCode) {
  ThenAllReady();
  ThenNotice(rendezvous::membership::Notice::Kind::kJobEnding, "the job ends: horovodrun stop");
  ThenVerdict(Stopped());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 143);
  EXPECT_EQ(stderr_, "horovodrun: the job ends: horovodrun stop\n");
}

// Workers may use their world while a signal stops them, but not after a failure.
TEST_F(JobTest, SignalsInterrupt_FailuresDoNot) {
  ThenAllReady();
  ThenSignal(SIGHUP);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 129);
  EXPECT_EQ(daemon_.interrupts, 1);
}

TEST_F(JobTest, NoticesOfSchedulers_GoToTheWorkers_AndEndNothing) {
  ThenAllReady();
  Then([this] { events_.Post(EventOf(SIGUSR1)); });
  Then([this] { events_.Post(EventOf(SIGXCPU)); });
  rendezvous::membership::Verdict success;
  success.success = true;
  ThenVerdict(success);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(daemon_.signals, (std::vector<int>{SIGUSR1, SIGXCPU}));
  EXPECT_TRUE(daemon_.stops.empty());
}

TEST_F(JobTest, EndOfStdinIsReportedAsTheEndOfTheCaller) {
  ThenAllReady();
  ThenSignal(0);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 129);
  EXPECT_THAT(stderr_, ::testing::StartsWith(
                           "horovodrun: the program that started horovodrun is gone (stdin has "
                           "ended); stopping 4 processes\n"));
  EXPECT_THAT(stderr_, ::testing::Not(::testing::HasSubstr("Ctrl-C")));
}

TEST_F(JobTest, SecondCtrlCKillsAtOnce) {
  ThenAllReady();
  Then([this] {
    agents_["alpha"].stubborn = true;
    daemon_.deaf = true;
  });
  ThenSignal(SIGINT);
  ThenSignal(SIGINT);
  const absl::Time before = clock_.Now();
  EXPECT_EQ(Run(), 130);
  ASSERT_EQ(daemon_.stops.size(), 2u);
  EXPECT_EQ(daemon_.stops[1].grace, absl::ZeroDuration());
  EXPECT_TRUE(agents_["beta"].input_closed);
  EXPECT_FALSE(agents_["beta"].killed);
  EXPECT_TRUE(agents_["alpha"].killed);
  EXPECT_LT(clock_.Now() - before, absl::Seconds(1));
}

TEST_F(JobTest, CtrlCBeforeTheStartKillsWhatStillConnects) {
  Then([this] {
    agents_["alpha"].stubborn = true;
    agents_["beta"].stubborn = true;
  });
  ThenSignal(SIGINT);
  EXPECT_EQ(Run(), 130);
  EXPECT_TRUE(agents_["alpha"].killed && agents_["beta"].killed);
}

TEST_F(JobTest, AgentThatDoesNotExitIsClosedThenKilled) {
  ThenAllReady();
  Then([this] { agents_["alpha"].stubborn = true; });
  ThenVerdict(Success());
  EXPECT_EQ(Run(), 0);
  EXPECT_TRUE(agents_["alpha"].input_closed && agents_["alpha"].killed);
  EXPECT_TRUE(agents_["beta"].input_closed);
  EXPECT_FALSE(agents_["beta"].killed);
}

TEST_F(JobTest, LostAgentWithoutVerdictEndsTheJob) {
  ThenAllReady();
  Then([this] { agents_.Exit("beta", {0, SIGKILL, "oops\n"}); });
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(stderr_,
            "horovodrun: error: the agent on beta has ended: killed by signal 9 (Killed); it said: "
            "oops, and the job with it\n");
  EXPECT_EQ(daemon_.stops.size(), 1u);
}

TEST_F(JobTest, LostAgentIsReportedBesideTheDaemonsVerdict) {
  ThenAllReady();
  Then([this] { agents_.Exit("beta", {255, 0, "Connection to beta closed.\n"}); });
  rendezvous::membership::Verdict lost;
  lost.exit_code = 1;
  lost.host = "beta";
  lost.summary = "host beta was lost";
  ThenVerdict(lost);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(stderr_, HasSubstr("the agent on beta has ended: exit code 255; it said: Conn"));
  EXPECT_THAT(stderr_, HasSubstr("Cause: host beta was lost"));
}

TEST_F(JobTest, OutputWithoutAReaderEndsTheJob) {
  ThenAllReady();
  Then([this] { events_.Post(OutputIsBroken{false, EPIPE}); });
  ThenAgentsExit();
  EXPECT_EQ(Run(), 128 + SIGPIPE);
  EXPECT_EQ(stderr_,
            "horovodrun: nobody reads horovodrun's output any more; stopping 4 processes\n");
}

TEST_F(JobTest, LostOutputEndsTheJobAndIsReported) {
  ThenAllReady();
  Then([this] { events_.Post(OutputIsBroken{false, ENOSPC}); });
  ThenAgentsExit();
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(stderr_,
            "horovodrun: can't write to stdout: No space left on device; stopping 4 processes\n");
}

TEST_F(JobTest, LostLastOutputFailsTheJob) {
  ThenAllReady();
  ThenVerdict(Success());
  Then([this] {
    agents_.ExitAll();
    events_.Post(OutputIsBroken{false, ENOSPC});
  });
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(stderr_, "horovodrun: error: can't write to stdout: No space left on device\n");
}

TEST_F(JobTest, DaemonThatCantStartMeansNoAgents) {
  dependencies_.start_server = [](rendezvous::server::ServerOptions) {
    return absl::StatusOr<std::unique_ptr<rendezvous::server::Server>>(
        absl::UnavailableError("can't listen"));
  };
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(stderr_, "horovodrun: error: can't listen\n");
  EXPECT_EQ(agents_.size(), 0u);
}

TEST_F(JobTest, AgentThatCantStartEndsTheOthers) {
  agents_.FailOn("beta", absl::NotFoundError("beta: there is no ssh"));
  EXPECT_EQ(Run(), 2);
  EXPECT_EQ(stderr_, "horovodrun: error: beta: there is no ssh\n");
  EXPECT_TRUE(agents_["alpha"].exited);
}

TEST_F(JobTest, VerboseShowsPlanAndPhases) {
  plan_.verbose = true;
  ThenAllReady();
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(stderr_, HasSubstr("ranks 0-1        alpha"));
  EXPECT_THAT(stderr_, HasSubstr("the daemon listens on 127.0.0.1:4711"));
  EXPECT_THAT(stderr_, HasSubstr("the agent on beta is ready"));
  EXPECT_THAT(stderr_, HasSubstr("every agent has exited"));
}

TEST_F(JobTest, UnwritableEventLogIsReportedAndTheJobContinues) {
  auto log = rendezvous::reporting::EventLog::Open("/dev/full");
  ASSERT_TRUE(log.ok());
  dependencies_.event_log = log->get();
  ThenAllReady();
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(stderr_, HasSubstr("horovodrun: warning: can't write the event log /dev/full: No"));
}

TEST_F(JobTest, NoticesOfAStaticJobAreForVerboseAndTheLogOnlyButForStalls) {
  const std::string path = ::testing::TempDir() + "/job_test_events";
  auto log = rendezvous::reporting::EventLog::Open(path);
  ASSERT_TRUE(log.ok());
  dependencies_.event_log = log->get();
  ThenAllReady();
  ThenNotice(rendezvous::membership::Notice::Kind::kWorldFormed, "world of 4 workers formed", -1,
             4);
  ThenNotice(rendezvous::membership::Notice::Kind::kStalled, "Stalled for 1m");
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_, "horovodrun: Stalled for 1m\n");
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line, HasSubstr("\"kind\":\"world_formed\""));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace hvd::launcher::job
