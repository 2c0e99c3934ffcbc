#include "launcher/job.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/fake_agents.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSentence[] = "one or more processes exited with non-zero status";

// Whenever the job has nothing to do, the next step of the story happens; at a null step, and after
// the last one, time jumps to the deadline that the job waits for. So a story needs no time and no
// second thread.
class StoryClock : public Clock {
 public:
  std::deque<std::function<void()>> steps;

  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time deadline) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!condition.Eval() && !steps.empty()) {
      const std::function<void()> step = std::move(steps.front());
      steps.pop_front();
      if (!step) break;
      mutex.Unlock();
      step();
      mutex.Lock();
    }
    if (condition.Eval()) return true;
    if (deadline == absl::InfiniteFuture()) {
      mutex.Await(condition);
      return true;
    }
    now_ = std::max(now_, deadline);
    return false;
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

struct StopCall {
  int exit_code;
  absl::Duration grace;
};

// The daemon, as far as the launcher sees it. Finishes at once when it is asked to stop.
struct FakeDaemon {
  std::function<void(const Verdict&)> on_finished;
  Membership::View view;
  std::vector<StopCall> stops;
  std::vector<HostSlots> reported;
  bool finished = false;
  bool deaf = false;  // never finishes
};

class FakeServer : public Server {
 public:
  explicit FakeServer(FakeDaemon& daemon) : daemon_(daemon) {}
  std::vector<std::string> addresses() const override { return {"127.0.0.1:4711"}; }
  void RequestStop(std::string, int exit_code, absl::Duration grace) override {
    daemon_.stops.push_back({exit_code, grace});
    if (daemon_.finished || daemon_.deaf) return;
    daemon_.finished = true;
    Verdict verdict;
    verdict.exit_code = exit_code;
    verdict.summary = "stopped";
    daemon_.on_finished(verdict);
  }
  void ReportHosts(std::vector<HostSlots> hosts) override { daemon_.reported = std::move(hosts); }
  void Drain(std::string, absl::Duration, std::string) override {}
  Membership::View Describe() override { return daemon_.view; }

 private:
  FakeDaemon& daemon_;
};

class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    EXPECT_EQ(pipe2(out_, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_EQ(pipe2(err_, O_CLOEXEC | O_NONBLOCK), 0);
    OutputSinkOptions options;
    options.stdout_fd = out_[1];
    options.stderr_fd = err_[1];
    output_ = std::make_unique<OutputSink>(std::move(options));
    plan_.num_proc = 4;
    plan_.start_timeout = absl::Seconds(30);
    for (const char* host : {"alpha", "beta"}) {
      PlannedHost planned;
      planned.target.host = host;
      planned.slots = 2;
      plan_.hosts.push_back(planned);
    }
    dependencies_.start_agent = agents_.Starter();
    dependencies_.start_server = [this](ServerOptions options) {
      daemon_.on_finished = std::move(options.on_finished);
      return absl::StatusOr<std::unique_ptr<Server>>(std::make_unique<FakeServer>(daemon_));
    };
  }
  ~JobTest() override {
    for (int fd : {out_[0], out_[1], err_[0], err_[1]}) close(fd);
  }

  void Then(std::function<void()> step) { clock_.steps.push_back(std::move(step)); }
  void ThenTimePasses() { clock_.steps.push_back(nullptr); }
  void ThenAllReady() {
    Then([this] {
      agents_.Ready("alpha");
      agents_.Ready("beta");
      Attach("alpha");
      Attach("beta");
    });
  }
  void Attach(const std::string& host) {
    Membership::HostView view;
    view.host = {host, 2};
    view.attached = true;
    view.workers.resize(2);
    daemon_.view.hosts.push_back(view);
  }
  void ThenVerdict(const Verdict& verdict) {
    Then([this, verdict] {
      daemon_.finished = true;
      daemon_.on_finished(verdict);
    });
  }
  void ThenAgentsExit() {
    Then([this] { agents_.ExitAll(); });
  }
  void ThenSignal(int signal) {
    Then([this, signal] { events_.Post(StopSignal{signal}); });
  }

  int Run() {
    const int exit_code = RunJob(plan_, dependencies_, events_, *output_);
    stdout_ = ReadAll(out_[0]);
    stderr_ = ReadAll(err_[0]);
    return exit_code;
  }
  static std::string ReadAll(int fd) {
    std::string text(1 << 16, '\0');
    text.resize(std::max<ssize_t>(0, read(fd, text.data(), text.size())));
    return text;
  }
  static Verdict Success() {
    Verdict verdict;
    verdict.success = true;
    return verdict;
  }
  static Verdict Failure(int exit_code) {
    Verdict verdict;
    verdict.exit_code = exit_code;
    verdict.rank = 3;
    verdict.host = "beta";
    verdict.exit_meaning = absl::StrCat("exit code ", exit_code);
    verdict.consequences = 3;
    return verdict;
  }

  int out_[2];
  int err_[2];
  StoryClock clock_;
  JobEventQueue events_{clock_};
  std::unique_ptr<OutputSink> output_;
  FakeAgents agents_;
  FakeDaemon daemon_;
  JobPlan plan_;
  JobDependencies dependencies_;
  std::string stdout_;
  std::string stderr_;
};

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

TEST_F(JobTest, StartTimeoutNamesLateHostsAndTheirStates) {
  Then([this] { agents_.Ready("alpha"); });
  EXPECT_EQ(Run(), 2);
  EXPECT_EQ(
      stderr_,
      "horovodrun: error: gave up after 30s of waiting for alpha (its agent runs, but has not "
      "reached this machine at 127.0.0.1:4711; is there a firewall between?), beta (no answer "
      "through ssh yet); --start-timeout gives more time\n");
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

TEST_F(JobTest, LostAgentIsToldBesideTheDaemonsVerdict) {
  ThenAllReady();
  Then([this] { agents_.Exit("beta", {255, 0, "Connection to beta closed.\n"}); });
  Verdict lost;
  lost.exit_code = 1;
  lost.host = "beta";
  lost.summary = "host beta was lost";
  ThenVerdict(lost);
  ThenAgentsExit();
  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(stderr_, HasSubstr("the agent on beta has ended: exit code 255; it said: Conn"));
  EXPECT_THAT(stderr_, HasSubstr("Cause: host beta was lost"));
}

TEST_F(JobTest, BrokenOutputEndsTheJobQuietly) {
  ThenAllReady();
  Then([this] { events_.Post(OutputIsBroken{}); });
  ThenAgentsExit();
  EXPECT_EQ(Run(), 128 + SIGPIPE);
  EXPECT_EQ(stderr_, "");
}

TEST_F(JobTest, DaemonThatCantStartMeansNoAgents) {
  dependencies_.start_server = [](ServerOptions) {
    return absl::StatusOr<std::unique_ptr<Server>>(absl::UnavailableError("can't listen"));
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

}  // namespace
}  // namespace hvd
