#include "base/clock.h"

#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(RealClockTest, Now_CalledTwice_DoesNotGoBack) {
  const absl::Time first = Clock::Real().Now();
  EXPECT_GE(Clock::Real().Now(), first);
}

TEST(RealClockTest, AwaitWithDeadline_ConditionHolds_ReturnsTrueAtOnce) {
  absl::Mutex mutex;
  bool ready = true;
  absl::MutexLock lock(&mutex);
  EXPECT_TRUE(
      Clock::Real().AwaitWithDeadline(mutex, absl::Condition(&ready), absl::InfiniteFuture()));
}

TEST(RealClockTest, AwaitWithDeadline_DeadlinePassed_ReturnsFalse) {
  absl::Mutex mutex;
  bool ready = false;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(
      Clock::Real().AwaitWithDeadline(mutex, absl::Condition(&ready), Clock::Real().Now()));
}

}  // namespace
}  // namespace hvd
