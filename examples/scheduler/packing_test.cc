#include "examples/scheduler/packing.h"

#include <vector>

#include "gtest/gtest.h"

namespace {

using Shares = std::vector<int>;

TEST(PackTest, OneJob_GetsUpToItsMax) {
  EXPECT_EQ(Pack(4, {{2, 3, false}}), Shares({3}));
  EXPECT_EQ(Pack(4, {{2, 8, false}}), Shares({4}));
}

TEST(PackTest, NewJob_TakesSlotsFromARunningOne_ButLeavesItsMin) {
  EXPECT_EQ(Pack(4, {{2, 4, true}, {1, 2, false}}), Shares({3, 1}));
  EXPECT_EQ(Pack(4, {{2, 4, true}, {2, 2, false}}), Shares({2, 2}));
}

TEST(PackTest, JobThatDoesNotFit_Waits_AndOthersStart) {
  EXPECT_EQ(Pack(4, {{3, 4, true}, {2, 2, false}, {1, 1, false}}), Shares({3, 0, 1}));
}

TEST(PackTest, RunningJob_KeepsItsMin_EvenBehindANewOne) {
  EXPECT_EQ(Pack(4, {{4, 4, false}, {1, 1, true}}), Shares({0, 1}));
}

TEST(PackTest, WhatIsLeft_GoesRound) {
  EXPECT_EQ(Pack(7, {{1, 4, true}, {1, 2, true}, {1, 9, true}}), Shares({3, 2, 2}));
}

TEST(PackTest, NothingToGive_OrNobodyToTake) {
  EXPECT_EQ(Pack(0, {{1, 1, false}}), Shares({0}));
  EXPECT_EQ(Pack(4, {}), Shares());
}

}  // namespace
