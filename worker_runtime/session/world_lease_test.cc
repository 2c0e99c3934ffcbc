#include "worker_runtime/session/world_lease.h"

#include <atomic>
#include <memory>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::session {
namespace {

constexpr absl::Duration kTolerance = absl::Seconds(30);

// A fake daemon whose answers the test sets, and a clock that is set by hand.
class WorldLeaseTest : public ::testing::Test {
 protected:
  WorldLeaseTest() {
    lease_ = std::make_unique<WorldLease>(
        [this](absl::Duration) {
          absl::MutexLock lock(&mutex_);
          ++asked_;
          now_.since_boot += answer_takes_;
          return answer_;
        },
        [] {}, kTolerance,
        [this] {
          absl::MutexLock lock(&mutex_);
          return now_;
        });
  }
  // The lease also reports by itself every 2 s, so reports are not counted exactly.
  void Answer(absl::Status answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  void Pass(absl::Duration time, absl::Duration asleep = absl::ZeroDuration()) {
    absl::MutexLock lock(&mutex_);
    now_.since_boot += time;
    now_.asleep += asleep;
  }
  int asked() {
    absl::MutexLock lock(&mutex_);
    return asked_;
  }
  void AnswersTake(absl::Duration time) {
    absl::MutexLock lock(&mutex_);
    answer_takes_ = time;
  }

  absl::Mutex mutex_;
  os::BootTime now_ = {absl::Hours(5), absl::Hours(1)};
  absl::Status answer_ = absl::UnavailableError("away");
  absl::Duration answer_takes_;
  int asked_ = 0;
  std::unique_ptr<WorldLease> lease_;
};

TEST_F(WorldLeaseTest, NewWorld_CountsWithoutAQuestion) {
  Pass(kTolerance);
  EXPECT_TRUE(lease_->Check().ok());
}

TEST_F(WorldLeaseTest, AfterAPause_TheDaemonIsAsked) {
  Answer(absl::FailedPreconditionError("world 2 has begun"));
  Pass(kTolerance + absl::Seconds(1));
  EXPECT_TRUE(absl::IsAborted(lease_->Check()));
  Answer(absl::OkStatus());
  EXPECT_TRUE(lease_->Check().ok());
  Answer(absl::FailedPreconditionError("world 2 has begun"));
  EXPECT_TRUE(lease_->Check().ok()) << "its last word was new enough";
}

TEST_F(WorldLeaseTest, AfterASleep_TheDaemonIsAskedHoweverShort) {
  Answer(absl::FailedPreconditionError("world 2 has begun"));
  Pass(absl::Seconds(5), absl::Seconds(5));
  EXPECT_TRUE(absl::IsAborted(lease_->Check()));
}

// The host is paused between question and answer: then the answer is from before the pause.
TEST_F(WorldLeaseTest, AnswerThatComesLate_CountsFromTheQuestion) {
  Answer(absl::OkStatus());
  AnswersTake(kTolerance + absl::Seconds(1));
  EXPECT_TRUE(lease_->Confirm().ok());
  AnswersTake(absl::ZeroDuration());
  Answer(absl::FailedPreconditionError("world 2 has begun"));
  EXPECT_TRUE(absl::IsAborted(lease_->Check()));
}

TEST_F(WorldLeaseTest, SpeaksByItself_SoThatItHoldsOn) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](int* asked) { return *asked > 0; }, &asked_));
}

TEST_F(WorldLeaseTest, DaemonAway_IsBorneForItsTime) {
  EXPECT_TRUE(lease_->Confirm().ok());
  Pass(kTolerance + absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(lease_->Confirm()));
  EXPECT_TRUE(absl::IsUnavailable(lease_->Check()));
}

TEST_F(WorldLeaseTest, Confirm_AlwaysAsks) {
  const int before = asked();
  Answer(absl::NotFoundError("this job has no worker 3"));
  EXPECT_TRUE(absl::IsAborted(lease_->Confirm()));
  EXPECT_GT(asked(), before);
}

TEST_F(WorldLeaseTest, ReportSoon_DoesNotWaitForThePause) {
  const int before = asked();
  lease_->ReportSoon();
  absl::MutexLock lock(&mutex_);
  const auto has_asked = [&] {
    mutex_.AssertHeld();
    return asked_ > before;
  };
  mutex_.Await(absl::Condition(&has_asked));
}

}  // namespace
}  // namespace hvd::worker_runtime::session
