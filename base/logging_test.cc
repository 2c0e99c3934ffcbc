#include "base/logging.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

using ::testing::MatchesRegex;

// The output of a logger for two lines.
std::string Printed(absl::string_view level, bool hide_time) {
  testing::internal::CaptureStderr();
  const auto logger = MakeLogger("horovod", level, hide_time);
  logger->warn("it is late");
  logger->debug("it is {} o'clock");
  return testing::internal::GetCapturedStderr();
}

TEST(MakeLoggerTest, MakeLogger_Level_ShowsThatSeverityAndAbove) {
  EXPECT_EQ(Printed("error", true), "");
  EXPECT_EQ(Printed("warning", true), "horovod warning: it is late\n");
  EXPECT_EQ(Printed("debug", true),
            "horovod warning: it is late\nhorovod debug: it is {} o'clock\n");
}

TEST(MakeLoggerTest, MakeLogger_WithTime_IsFineAtLevelDebugOnly) {
  const std::string second = "20..-..-.. ..:..:..", milliseconds = second + "\\....";
  const std::string microseconds = milliseconds + "...";
  EXPECT_THAT(Printed("warning", false), MatchesRegex(milliseconds + " horovod warning: .*"));
  EXPECT_THAT(Printed("debug", false), MatchesRegex(microseconds + " horovod warning: .*"));
}

}  // namespace
}  // namespace hvd
