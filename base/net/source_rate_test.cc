#include "base/net/source_rate.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd::net {
namespace {

const absl::Time kStart = absl::UnixEpoch();

int TakeAll(SourceRate& rate, const std::string& source, absl::Time now) {
  int taken = 0;
  while (rate.Take(source, now)) ++taken;
  return taken;
}

TEST(SourceRateTest, Burst_ThenTheRate_OfEachSource) {
  SourceRate rate(/*per_second=*/10, /*burst=*/25);
  EXPECT_EQ(TakeAll(rate, "a", kStart), 25);
  EXPECT_EQ(TakeAll(rate, "a", kStart + absl::Milliseconds(500)), 5);
  EXPECT_EQ(TakeAll(rate, "b", kStart + absl::Milliseconds(500)), 25) << "a crowd costs it nothing";
  EXPECT_EQ(TakeAll(rate, "a", kStart + absl::Hours(1)), 25);
}

TEST(SourceRateTest, PeersThatProveThemselves_CostNothing) {
  SourceRate rate(10, 25);
  for (int member = 0; member < 1000; ++member) {
    ASSERT_TRUE(rate.Take("a", kStart)) << member;
    rate.GiveBack("a");
  }
  EXPECT_EQ(TakeAll(rate, "a", kStart), 25);
  rate.GiveBack("unknown");
}

TEST(SourceRateTest, ManySources_AreForgotten) {
  SourceRate rate(10, 25);
  EXPECT_EQ(TakeAll(rate, "crowd", kStart), 25);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(rate.Take(std::to_string(i), kStart + i * absl::Milliseconds(1)));
    rate.GiveBack("crowd");
    ASSERT_TRUE(rate.Take("crowd", kStart + i * absl::Milliseconds(1)));
  }
  EXPECT_LE(rate.size(), 1024u + 1);
}

}  // namespace
}  // namespace hvd::net
