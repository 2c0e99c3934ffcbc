#include "agent/process/adoption_lines.h"

#include "gtest/gtest.h"

namespace hvd::agent::process {
namespace {

TEST(AdoptionLinesTest, StartLine_NamesWhatChanges) {
  EXPECT_EQ(StartLine({{"A", "same"}, {"B", "old"}, {"C", "gone"}},
                      {{"A", "same"}, {"B", "new \"x\""}, {"D", ""}}),
            "{\"start\":{\"B\":\"new \\\"x\\\"\",\"D\":\"\",\"C\":null}}\n");
  EXPECT_EQ(StartLine({}, {}), "{\"start\":{}}\n");
}

TEST(AdoptionLinesTest, StopLine_IsInSeconds) {
  EXPECT_EQ(StopLine(absl::Milliseconds(1500)), "{\"stop\":1.5}\n");
}

TEST(AdoptionLinesTest, ErrorLine_IsOneLine) {
  EXPECT_EQ(ErrorLine("a \"b\""), "{\"error\":\"a \\\"b\\\"\"}\n");
}

TEST(AdoptionLinesTest, ParseExitLine_AsJsonIsWritten) {
  EXPECT_EQ(ParseExitLine("{\"exit\": 0}\n"), 0);
  EXPECT_EQ(ParseExitLine(" { \"exit\" :-3 } \r\n"), -3);
  EXPECT_EQ(ParseExitLine("{\"exit\":255}"), 255);
}

TEST(AdoptionLinesTest, ParseExitLine_AnythingElse_IsNone) {
  for (const char* line :
       {"", "\n", "{}", "{\"exit\": }", "{\"exit\": 1", "{\"exit\": 1.5}", "{\"exit\": \"0\"}",
        "{\"quit\": 0}", "{\"exit\": 0, \"x\": 1}", "{\"exit\": 99999999999}", "exit 0"}) {
    EXPECT_EQ(ParseExitLine(line), std::nullopt) << line;
  }
}

}  // namespace
}  // namespace hvd::agent::process
