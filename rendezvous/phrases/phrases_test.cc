#include "rendezvous/phrases/phrases.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::phrases {
namespace {

TEST(PhrasesTest, RankOnHost) { EXPECT_EQ(RankOnHost(3, "b"), "rank 3 on host b"); }

TEST(PhrasesTest, Lists_KnowSingularAndPlural) {
  EXPECT_EQ(Ranks({3}), "rank 3");
  EXPECT_EQ(Ranks({1, 2}), "ranks 1, 2");
  EXPECT_EQ(Hosts({"b"}), "host b");
  EXPECT_EQ(Hosts({"b", "c"}), "hosts b, c");
}

TEST(PhrasesTest, LongLists_AreCut) {
  EXPECT_EQ(Ranks({1, 3, 4, 5, 6, 7, 8, 9}), "ranks 1, 3, 4, 5, 6, 7, 8, 9");
  EXPECT_EQ(Ranks({1, 3, 4, 5, 6, 7, 8, 9, 10, 11}), "ranks 1, 3, 4, 5, 6, 7, 8, 9 and 2 more");
}

TEST(PhrasesTest, Count) {
  EXPECT_EQ(Count(1, "rank"), "1 rank");
  EXPECT_EQ(Count(4, "rank"), "4 ranks");
}

TEST(PhrasesTest, OneLine_HasNoBreaks) {
  EXPECT_EQ(OneLine("boom"), "boom");
  EXPECT_EQ(OneLine(" a\r\nb\nc\rd\n"), "a b c d");
}

TEST(PhrasesTest, OneLine_HasNoControlCharacters) {
  EXPECT_EQ(OneLine("bad \x1b]0;title\a\xc2\x9b"
                    "2J"),
            R"(bad \x1b]0;title\x07\xc2\x9b2J)");
}

}  // namespace
}  // namespace hvd::rendezvous::phrases
