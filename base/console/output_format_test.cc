#include "base/console/output_format.h"

#include <cstdlib>
#include <ctime>

#include "gtest/gtest.h"

namespace hvd::console {
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

TEST(OutputAsJson, Line_BecomesAnObject) {
  const absl::Time time = absl::FromUnixSeconds(1795254813);
  EXPECT_EQ(OutputAsJson(time, 3, "a", false, "say \"hi\"\n"),
            R"({"time":"2026-11-21T09:53:33.000000Z","rank":3,"host":"a","stream":"stdout",)"
            R"("text":"say \"hi\""})"
            "\n");
}

TEST(OutputAsJson, EveryEndOfALine_IsLeftOut) {
  for (const char* line : {"50%\r", "50%\r\n", "50%\n", "50%"}) {
    EXPECT_NE(OutputAsJson({}, 0, "a", true, line).find(R"("stream":"stderr","text":"50%"})"),
              std::string::npos);
  }
}

TEST(WordsAsJson, EachLine_BecomesAnObjectWithoutARank) {
  const std::string opening =
      R"({"time":"1970-01-01T00:00:00.000000Z","rank":null,"host":null,"stream":"horovodrun",)";
  EXPECT_EQ(WordsAsJson(absl::UnixEpoch(), "\none\ntwo\n"),
            opening + "\"text\":\"one\"}\n" + opening + "\"text\":\"two\"}\n");
}

TEST(RankDirectory, PadsToTheWidthOfTheHighestRank) {
  EXPECT_EQ(RankDirectory(0, 1), "rank.0");
  EXPECT_EQ(RankDirectory(7, 10), "rank.7");
  EXPECT_EQ(RankDirectory(7, 11), "rank.07");
  EXPECT_EQ(RankDirectory(42, 101), "rank.042");
}

}  // namespace
}  // namespace hvd::console
