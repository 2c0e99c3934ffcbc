#include "base/cancellation_watch.h"

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(CancellationWatchTest, CallsOnceWithTheReason) {
  for (const bool before : {false, true}) {
    Cancellation cancellation;
    if (before) cancellation.Cancel(absl::AbortedError("enough"));
    absl::Notification told;
    absl::Status why;
    const CancellationWatch watch(&cancellation, [&](const absl::Status& status) {
      why = status;
      told.Notify();
    });
    cancellation.Cancel(absl::AbortedError("enough"));
    told.WaitForNotification();
    EXPECT_EQ(why, absl::AbortedError("enough"));
  }
}

TEST(CancellationWatchTest, EndsWithoutACall) {
  Cancellation cancellation;
  const auto never = [](const absl::Status& why) { ADD_FAILURE() << why; };
  const CancellationWatch nothing(nullptr, never), watch(&cancellation, never);
}

}  // namespace
}  // namespace hvd
