#include "collectives/links/patience.h"

#include "gtest/gtest.h"

namespace hvd::collectives::links {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(8);
const absl::Time kBegin = absl::FromUnixSeconds(1'000'000);
absl::Time After(double seconds) { return kBegin + absl::Seconds(seconds); }

TEST(PatienceTest, NothingMoves_OverAfterTheTimeoutFromTheFirstCallOn) {
  Patience patience(kTimeout);
  EXPECT_FALSE(patience.IsOver(kBegin, false));
  EXPECT_FALSE(patience.IsOver(After(7.9), false));
  EXPECT_TRUE(patience.IsOver(After(8), false));
}

TEST(PatienceTest, EachMovementBeginsTheTimeoutAnew) {
  Patience patience(kTimeout);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(patience.IsOver(After(7.9 * i), true));
  EXPECT_FALSE(patience.IsOver(After(7.9 * 10), false));
  EXPECT_TRUE(patience.IsOver(After(7.9 * 9 + 8), false));
}

TEST(PatienceTest, NoTimeout_OverAtOnce) {
  EXPECT_TRUE(Patience(absl::ZeroDuration()).IsOver(kBegin, false));
}

TEST(PatienceTest, InfiniteTimeout_NeverOver_NeedsNoLook) {
  Patience patience(absl::InfiniteDuration());
  EXPECT_FALSE(patience.IsOver(kBegin, false));
  EXPECT_FALSE(patience.IsOver(After(1e9), false));
  EXPECT_EQ(patience.UntilNextLook(After(1e9)), absl::InfiniteDuration());
}

TEST(PatienceTest, NextLook_ComesOften_AndNotAfterTheEnd) {
  Patience patience(kTimeout);
  EXPECT_FALSE(patience.IsOver(kBegin, false));
  EXPECT_EQ(patience.UntilNextLook(kBegin), absl::Seconds(1));
  EXPECT_FALSE(patience.IsOver(After(7.75), false));
  EXPECT_EQ(patience.UntilNextLook(After(7.75)), absl::Seconds(0.25));
}

}  // namespace
}  // namespace hvd::collectives::links
