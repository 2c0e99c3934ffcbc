#include "base/text/shortened.h"

#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(ShortenedTest, ShortText_IsUnchanged) {
  EXPECT_EQ(Shortened(""), "");
  EXPECT_EQ(Shortened("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(Shortened(std::string(kLongestText, 'x')).size(), kLongestText);
}

TEST(ShortenedTest, LongText_KeepsBothEnds) {
  EXPECT_EQ(Shortened("abcdefghi", 8), "abcdef ... (1 bytes left out) ... hi");
  const std::string text = "bad record: " + std::string(2000000, 'x') + " (file.csv)";
  const std::string shorter = Shortened(text);
  EXPECT_LT(shorter.size(), kLongestText + 50);
  EXPECT_EQ(shorter.substr(0, 13), "bad record: x");
  EXPECT_EQ(shorter.substr(shorter.size() - 12), "x (file.csv)");
}

TEST(ShortenedTest, CharactersStayWhole) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "\xe2\x82\xac";  // three bytes each
  for (size_t most = 0; most < 30; ++most) {
    const std::string shorter = Shortened(text, most);
    const size_t gap = shorter.find(" ... ");
    EXPECT_EQ(gap % 3, 0u) << most;
    EXPECT_EQ((shorter.size() - shorter.find(") ... ") - 6) % 3, 0u) << most;
  }
  EXPECT_EQ(Shortened(std::string(20, '\x80'), 8), " ... (20 bytes left out) ... ");
}

}  // namespace
}  // namespace hvd::text
