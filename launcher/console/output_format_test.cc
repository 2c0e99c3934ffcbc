#include "launcher/console/output_format.h"

#include <cstdlib>
#include <ctime>

#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(LinePrefix, NamesRankAndStream) {
  EXPECT_EQ(LinePrefix(0, false, std::nullopt), "[0]<stdout>:");
  EXPECT_EQ(LinePrefix(12, true, std::nullopt), "[12]<stderr>:");
}

TEST(LinePrefix, TimeHasTheFormOfAsctime) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(LinePrefix(1, false, absl::FromUnixSeconds(1795254813)),
            "Sat Nov 21 09:53:33 2026[1]<stdout>:");
  EXPECT_EQ(LinePrefix(1, false, absl::FromUnixSeconds(1793870013)),
            "Thu Nov  5 09:13:33 2026[1]<stdout>:");
}

TEST(RankDirectory, PadsToTheWidthOfTheHighestRank) {
  EXPECT_EQ(RankDirectory(0, 1), "rank.0");
  EXPECT_EQ(RankDirectory(7, 10), "rank.7");
  EXPECT_EQ(RankDirectory(7, 11), "rank.07");
  EXPECT_EQ(RankDirectory(42, 101), "rank.042");
}

}  // namespace
}  // namespace hvd
