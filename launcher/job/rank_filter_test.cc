#include "launcher/job/rank_filter.h"

#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

TEST(RankFilter, Shows_WithoutRanges_All) {
  RankFilter filter{plan::RankRanges()};
  filter.SetRanks({{1, 0}});
  EXPECT_TRUE(filter.Shows(1, 0));
  EXPECT_TRUE(filter.Shows(7, 5));
}

TEST(RankFilter, Shows_BeforeAWorld_ByTheRankAtTheStart) {
  RankFilter filter(plan::RankRanges{{0, 0}, {4, 6}});
  for (const int rank : {0, 4, 5, 6}) EXPECT_TRUE(filter.Shows(9, rank)) << rank;
  for (const int rank : {-1, 1, 3, 7}) EXPECT_FALSE(filter.Shows(9, rank)) << rank;
}

TEST(RankFilter, Shows_InAWorld_ByTheRankThere) {
  RankFilter filter(plan::RankRanges{{0, 0}});
  filter.SetRanks({{1, 1}, {2, 0}});
  EXPECT_FALSE(filter.Shows(1, 0));
  EXPECT_TRUE(filter.Shows(2, 1));
  EXPECT_FALSE(filter.Shows(3, 0)) << "not a member yet";
}

TEST(RankFilter, Shows_WhileRanksAreAwaited_All) {
  RankFilter filter(plan::RankRanges{{0, 0}});
  filter.SetRanks({{1, 0}, {2, 1}});
  filter.AwaitRanks();
  EXPECT_TRUE(filter.Shows(2, 1));
  filter.SetRanks({{2, 0}});
  EXPECT_TRUE(filter.Shows(2, 1));
  EXPECT_FALSE(filter.Shows(1, 0));
}

}  // namespace
}  // namespace hvd::launcher::job
