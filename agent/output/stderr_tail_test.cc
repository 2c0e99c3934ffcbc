#include "agent/output/stderr_tail.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd::agent::output {
namespace {

using Lines = std::deque<std::string>;

TEST(StderrTailTest, Append_MoreThanKept_KeepsTheLast) {
  StderrTail tail;
  for (int i = 0; i < 100; ++i) tail.Append(std::to_string(i) + "\n");
  ASSERT_EQ(tail.lines().size(), StderrTail::kMaxLines);
  EXPECT_EQ(tail.lines().front(), "60");
  EXPECT_EQ(tail.lines().back(), "99");
}

TEST(StderrTailTest, Append_ProgressBar_KeepsItsLastStateOnly) {
  StderrTail tail;
  tail.Append("start\n");
  for (const char* state : {"10%\r", "50%\r", "100%\r"}) tail.Append(state);
  EXPECT_EQ(tail.lines(), (Lines{"start", "100%"}));
  tail.Append("Traceback\n");
  EXPECT_EQ(tail.lines(), (Lines{"start", "Traceback"}));
}

TEST(StderrTailTest, Append_ProgressBarThenNewline_KeepsTheBar) {
  StderrTail tail;
  tail.Append("100%\r");
  tail.Append("\n");
  EXPECT_EQ(tail.lines(), Lines{"100%"});
}

TEST(StderrTailTest, Append_VeryLongLine_IsCutToValidUtf8) {
  StderrTail tail;
  tail.Append(std::string(StderrTail::kMaxLineBytes - 1, 'x') + "\xc3\xa9\n");
  EXPECT_EQ(tail.lines()[0], std::string(StderrTail::kMaxLineBytes - 1, 'x') + "\xef\xbf\xbd");
}

}  // namespace
}  // namespace hvd::agent::output
