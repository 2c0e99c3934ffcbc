#include "base/text/duration_text.h"

#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(DurationTextTest, IsAsExactAsMatters) {
  EXPECT_EQ(DurationText(absl::Nanoseconds(4000103716)), "4s");
  EXPECT_EQ(DurationText(absl::Nanoseconds(19999102081)), "19.9s");
  EXPECT_EQ(DurationText(absl::Milliseconds(1250)), "1.2s");
  EXPECT_EQ(DurationText(absl::Milliseconds(830) + absl::Nanoseconds(5)), "830ms");
  EXPECT_EQ(DurationText(absl::Seconds(125) + absl::Milliseconds(999)), "2m5s");
  EXPECT_EQ(DurationText(absl::Nanoseconds(1500)), "1us");
}

TEST(DurationTextTest, RoundValues_StayRound) {
  EXPECT_EQ(DurationText(absl::Seconds(30)), "30s");
  EXPECT_EQ(DurationText(absl::Minutes(10)), "10m");
  EXPECT_EQ(DurationText(absl::Milliseconds(10500)), "10.5s");
  EXPECT_EQ(DurationText(absl::ZeroDuration()), "0s");
  EXPECT_EQ(DurationText(absl::Nanoseconds(7)), "0s");
  EXPECT_EQ(DurationText(absl::InfiniteDuration()), "inf");
  EXPECT_EQ(DurationText(-absl::Seconds(2)), "-2s");
}

}  // namespace
}  // namespace hvd::text
