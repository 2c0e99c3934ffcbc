#include "base/net/peer/back_off.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace hvd::net::peer {
namespace {

TEST(BackOffTest, Next_GrowsToASecondAndStaysInTheUpperHalf) {
  std::mt19937 random(1);
  BackOff back_off(absl::Milliseconds(50), absl::Seconds(1));
  absl::Duration range = absl::Milliseconds(50);
  for (int i = 0; i < 20; ++i) {
    const absl::Duration pause = back_off.Next(random);
    EXPECT_GE(pause, range / 2);
    EXPECT_LE(pause, range);
    range = std::min(range * 2, absl::Seconds(1));
  }
}

TEST(BackOffTest, Next_TwoClients_DoNotWaitAlike) {
  std::mt19937 random(1);
  BackOff one(absl::Milliseconds(50), absl::Seconds(1));
  BackOff other = one;
  EXPECT_NE(one.Next(random), other.Next(random));
}

}  // namespace
}  // namespace hvd::net::peer
