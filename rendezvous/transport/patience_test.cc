#include "rendezvous/transport/patience.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::transport {
namespace {

constexpr absl::Duration kSilence = absl::Seconds(30);

TEST(PatienceTest, ReattachTimeHasSeveralAttempts) {
  for (const int seconds : {5, 30, 600}) {
    const Patience patience = PatienceFor(kSilence, absl::Seconds(seconds));
    EXPECT_EQ(patience.silence, kSilence);
    EXPECT_LE(3 * patience.attempt, absl::Seconds(seconds));
    EXPECT_LE(3 * patience.attempt, kSilence);
  }
}

TEST(PatienceTest, NoReattachTime_OneAttemptMayTakeAll) {
  EXPECT_EQ(PatienceFor(kSilence, absl::ZeroDuration()).attempt, kSilence);
}

TEST(PatienceTest, ShortTimes_AnAttemptCanSucceed) {
  EXPECT_EQ(PatienceFor(absl::Milliseconds(10), absl::Milliseconds(10)).attempt, absl::Seconds(1));
}

}  // namespace
}  // namespace hvd::rendezvous::transport
