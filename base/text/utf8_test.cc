#include "base/text/utf8.h"

#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(ToUtf8Test, ToUtf8_Valid_StaysAsItIs) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n";
  EXPECT_EQ(ToUtf8(text), text);
}

TEST(ToUtf8Test, ToUtf8_Invalid_IsReplaced) {
  for (const char* bad : {"\xff", "\xc0", "\x80"}) EXPECT_EQ(ToUtf8(bad), "\xef\xbf\xbd");
  for (const char* bad :
       {"\xc0\x80", "\xc3(", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(ToUtf8(bad).rfind("\xef\xbf\xbd", 0), 0u);
  }
}

}  // namespace
}  // namespace hvd::text
