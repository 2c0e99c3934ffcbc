// Tests of waits while the wall clock is set. This program defines its own wall clock: the
// functions here replace those of the C library, also for Abseil's calls.
#include "base/deadline_timer.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "gtest/gtest.h"

namespace {

constexpr time_t kHour = 3600;

std::atomic<time_t> clock_is_ahead{0};

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += clock_is_ahead.load();
  return result;
}

extern "C" __attribute__((visibility("default"))) int gettimeofday(timeval* time, void*) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

namespace hvd {
namespace {

class DeadlineTimerTest : public testing::Test {
 protected:
  ~DeadlineTimerTest() override { clock_is_ahead = 0; }

  // Returns when the thread has released the mutex to wait.
  void AwaitWaiting() {
    waiting_.WaitForNotification();
    absl::MutexLock lock(&mutex_);
  }

  absl::Mutex mutex_;
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Notification waiting_;
};

TEST_F(DeadlineTimerTest, ClockIsSetBackByAnHour_WaitStillEnds) {
  clock_is_ahead = kHour;
  ASSERT_GE(WallNow(), absl::FromTimeT(time(nullptr)) + absl::Minutes(59))
      << "the clock defined here is not in use";
  std::thread waiter([this] {
    absl::MutexLock lock(&mutex_);
    waiting_.Notify();
    EXPECT_FALSE(Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&holds_),
                                                 Clock::Real().Now() + absl::Milliseconds(200)));
  });
  AwaitWaiting();
  clock_is_ahead = 0;
  waiter.join();
}

TEST_F(DeadlineTimerTest, ClockIsSetForwardByAnHour_TheWaitGoesOn) {
  std::thread waiter([this] {
    absl::MutexLock lock(&mutex_);
    waiting_.Notify();
    EXPECT_TRUE(Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&holds_),
                                                Clock::Real().Now() + absl::Minutes(30)));
  });
  AwaitWaiting();
  clock_is_ahead = kHour;
  {
    absl::MutexLock lock(&mutex_);
    holds_ = true;
  }
  waiter.join();
}

TEST_F(DeadlineTimerTest, ConditionComesTrue_TheWaitEnds) {
  std::thread waiter([this] {
    absl::MutexLock lock(&mutex_);
    waiting_.Notify();
    EXPECT_TRUE(Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&holds_),
                                                Clock::Real().Now() + absl::Hours(24 * 400 * 365)));
  });
  AwaitWaiting();
  {
    absl::MutexLock lock(&mutex_);
    holds_ = true;
  }
  waiter.join();
}

// At the deadline the mutex is held by another thread, which is in a timed wait itself.
TEST_F(DeadlineTimerTest, MutexIsHeld_OtherTimersAreNotDelayed) {
  std::thread waiter([this] {
    absl::MutexLock lock(&mutex_);
    waiting_.Notify();
    EXPECT_FALSE(Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&holds_),
                                                 Clock::Real().Now() + absl::Milliseconds(20)));
  });
  waiting_.WaitForNotification();
  {
    absl::MutexLock lock(&mutex_);
    absl::Mutex other;
    absl::MutexLock other_lock(&other);
    const bool never = false;
    EXPECT_FALSE(Clock::Real().AwaitWithDeadline(other, absl::Condition(&never),
                                                 Clock::Real().Now() + absl::Milliseconds(100)));
  }
  waiter.join();
}

TEST_F(DeadlineTimerTest, ManyWaits_OfManyThreads_AllEnd) {
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([this, i] {
      for (int k = 0; k < 50; ++k) {
        absl::Mutex own;  // goes at once when the wait is over
        absl::Mutex& mutex = k % 2 == 0 ? own : mutex_;
        absl::MutexLock lock(&mutex);
        const bool never = false;
        EXPECT_FALSE(Clock::Real().AwaitWithDeadline(
            mutex, absl::Condition(&never),
            Clock::Real().Now() + absl::Microseconds(100 * ((i * 7 + k) % 20))));
      }
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace hvd
