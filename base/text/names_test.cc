#include "base/text/names.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(CheckNameTest, NamesThatFitInALine) {
  for (const char* name : {"", "node1", "10.0.0.1", "fd00::1", "rack/7", "h\xc3\xb6st"}) {
    EXPECT_TRUE(CheckName("--host", name).ok()) << name;
  }
  EXPECT_TRUE(CheckName("--host", std::string(255, 'a')).ok());
}

TEST(CheckNameTest, OthersAreRefusedInOneLine) {
  for (const std::string& name :
       {std::string("a b"), std::string("a\nb"), std::string("a\0b", 3), std::string("\x1b[2J"),
        std::string("\x7f"), std::string("a\xc2\x9b"), std::string("\xff"),
        std::string(256, 'a')}) {
    const absl::Status status = CheckName("--host", name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_EQ(OnOneLine(status.message()), status.message());
  }
  EXPECT_TRUE(
      absl::StartsWith(CheckName("--host", "a\nb").message(), "--host: 'a\\nb' is no name"));
}

TEST(OnOneLineTest, ControlCharactersAreShown) {
  EXPECT_EQ(OnOneLine("it's \xc3\xb6\t\"1\\2\""), "it's \xc3\xb6\\t\"1\\2\"");
  EXPECT_EQ(OnOneLine(absl::string_view("a\r\n\0\x1b[2J", 8)), "a\\r\\n\\x00\\x1b[2J");
  // U+009B, which some terminals take for ESC [; U+00A9 and a torn character.
  EXPECT_EQ(OnOneLine("\xc2\x9b[\xc2\xa9\xc2"), "\\xc2\\x9b[\xc2\xa9\xc2");
}

}  // namespace
}  // namespace hvd::text
