#include "base/text/json.h"

#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(JsonString, Text_StaysAsItIs) { EXPECT_EQ(JsonString("a é 😀"), "\"a é 😀\""); }

TEST(JsonString, QuotesAndControls_AreEscaped) {
  EXPECT_EQ(JsonString(absl::string_view("\"\\\n\t\x1b[1m\0", 9)),
            "\"\\\"\\\\\\u000a\\u0009\\u001b[1m\\u0000\"");
}

TEST(IsUtf8, TellsThemApart) {
  EXPECT_TRUE(IsUtf8("") && IsUtf8("a é 😀"));
  EXPECT_FALSE(IsUtf8("a\xff") || IsUtf8("\xe2\x82"));
}

TEST(JsonString, InvalidUtf8_IsReplaced) {
  EXPECT_EQ(JsonString("a\xff"
                       "b"),
            "\"a\\ufffdb\"");
  EXPECT_EQ(JsonString("\xc0\x80"), "\"\\ufffd\\ufffd\"");
  EXPECT_EQ(JsonString("\xe2\x82"), "\"\\ufffd\\ufffd\"");
}

TEST(JsonTime, IsUtcWithMicroseconds) {
  EXPECT_EQ(JsonTime(absl::FromUnixMicros(1795254813000042)), "\"2026-11-21T09:53:33.000042Z\"");
}

}  // namespace
}  // namespace hvd::text
