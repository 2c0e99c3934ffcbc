#include "launcher/job/job_status.h"

#include <poll.h>

#include <memory>

#include "gtest/gtest.h"
#include "launcher/job/job_test_util.h"

namespace hvd::launcher::job {
namespace {

// A job whose stderr is a pipe that is treated as a terminal.
class JobStatusTest : public JobTest {
 protected:
  JobStatusTest() {
    console::OutputSinkOptions options;
    options.stdout_fd = out_[1];
    options.stderr_fd = err_[1];
    options.has_status_line = true;
    output_ = std::make_unique<console::OutputSink>(std::move(options));
    daemon_.view.state = rendezvous::lifecycle::JobState::kRunning;
    daemon_.view.epoch = Epoch(1);
  }
  void Pass(absl::Duration time) {
    absl::Mutex mutex;
    absl::MutexLock lock(&mutex);
    bool never = false;
    clock_.AwaitWithDeadline(mutex, absl::Condition(&never), clock_.Now() + time);
  }

  // The next step comes once this is on the terminal.
  void ThenShown(const std::string& text) {
    Then([this, text] {
      pollfd readable = {err_[0], POLLIN, 0};
      while (shown_.find(text) == std::string::npos) {
        ASSERT_EQ(poll(&readable, 1, 60'000), 1) << shown_;
        shown_ += ReadAll(err_[0]);
      }
    });
  }

  FakeServer server_{daemon_};
  std::string shown_;
};

TEST_F(JobStatusTest, NextDue_Settled_OnlyWhenSomethingHappens) {
  JobStatus status(*output_, server_, clock_);
  EXPECT_EQ(status.NextDue(), clock_.Now());
  status.Update();
  EXPECT_EQ(status.NextDue(), absl::InfiniteFuture());
  Pass(absl::Seconds(10));
  status.WakeUp();
  EXPECT_EQ(status.NextDue(), clock_.Now());
}

TEST_F(JobStatusTest, NextDue_ManyThingsHappen_FourTimesASecond) {
  JobStatus status(*output_, server_, clock_);
  const absl::Time start = clock_.Now();
  status.Update();
  status.WakeUp();
  EXPECT_EQ(status.NextDue(), start + absl::Milliseconds(250));
  Pass(absl::Milliseconds(100));
  status.WakeUp();
  EXPECT_EQ(status.NextDue(), start + absl::Milliseconds(250));
}

TEST_F(JobStatusTest, NextDue_WorldIsAwaited_OnceASecond) {
  daemon_.view.state = rendezvous::lifecycle::JobState::kResetting;
  JobStatus status(*output_, server_, clock_);
  status.Update();
  EXPECT_EQ(status.NextDue(), clock_.Now() + absl::Seconds(1));
}

TEST_F(JobStatusTest, NextDue_NoTerminal_Never) {
  console::OutputSink plain({});
  JobStatus status(plain, server_, clock_);
  status.WakeUp();
  EXPECT_EQ(status.NextDue(), absl::InfiniteFuture());
}

TEST_F(JobStatusTest, ElasticJob_HasALineUntilItsLastWords) {
  MakeElastic();
  ThenFound({"alpha"});
  ThenTimePasses();
  ThenShown("\rworld 1 | 0 workers on 0 hosts\x1b[J\r");
  ThenNotice(rendezvous::membership::Notice::Kind::kWorldFormed, "world of 4 workers formed", -1,
             4);
  Then([this] { daemon_.view.epoch = Epoch(7); });
  ThenTimePasses();
  ThenShown("\rworld 7 | 0 workers on 0 hosts\x1b[J\r");
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_, "\r\x1b[Jhorovodrun: 4 ranks finished; 1 world\n");
}

TEST_F(JobStatusTest, StaticJob_HasNone) {
  ThenAllReady();
  ThenVerdict(Success());
  ThenAgentsExit();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(stderr_, "");
}

}  // namespace
}  // namespace hvd::launcher::job
