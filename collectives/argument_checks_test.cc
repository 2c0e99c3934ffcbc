#include "collectives/argument_checks.h"

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

TEST(ArgumentChecksTest, CheckCounts_OneForEachRank) {
  EXPECT_TRUE(CheckCounts({0, 7, 0}, 3).ok());
  EXPECT_EQ(CheckCounts({1, 2}, 3).message(), "got 2 counts for 3 ranks");
  EXPECT_TRUE(absl::IsInternal(CheckCounts({1, 2, 3, 4}, 3)));
}

TEST(ArgumentChecksTest, CheckIsRank_FromZeroToTheLast) {
  EXPECT_TRUE(CheckIsRank(0, 3).ok());
  EXPECT_TRUE(CheckIsRank(2, 3).ok());
  EXPECT_TRUE(absl::IsInternal(CheckIsRank(-1, 3)));
  EXPECT_EQ(CheckIsRank(3, 3).message(), "there is no rank 3 of 3");
}

}  // namespace
}  // namespace hvd::collectives
