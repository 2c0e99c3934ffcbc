#include "rendezvous/policy/commit_times.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::policy {
namespace {

absl::Time At(int second) { return absl::FromUnixSeconds(1000 + second); }

TEST(CommitTimesTest, UnknownCommit_HasTheTimeOfTheOneBefore) {
  CommitTimes times;
  EXPECT_EQ(times.TimeOf(5, At(9)), At(9));
  times.GoOn(0, At(0));
  times.Made(4, At(4), false);
  times.Made(6, At(6), false);
  EXPECT_EQ(times.TimeOf(0, At(9)), At(0));
  EXPECT_EQ(times.TimeOf(5, At(9)), At(4));
  EXPECT_EQ(times.TimeOf(6, At(9)), At(6));
  EXPECT_EQ(times.TimeOf(7, At(9)), At(6));
}

TEST(CommitTimesTest, GoingBack_GivesUpLaterCommitsAndLeavesThePauseOut) {
  CommitTimes times;
  times.GoOn(0, At(0));
  times.Made(7, At(7), true);
  times.Made(10, At(10), false);
  times.GoOn(7, At(50));  // it broke at 12: 5 s were lost, and 38 s passed without a world
  EXPECT_EQ(times.TimeOf(7, At(99)), At(50));
  EXPECT_EQ(times.TimeOf(10, At(99)), At(50)) << "commit 10 was given up";
  EXPECT_EQ(times.TimeOf(0, At(99)), At(43)) << "7 s of work lie before commit 7";
}

TEST(CommitTimesTest, GoingOn_KeepsWhatTheNewWorldHasMadeMeanwhile) {
  CommitTimes times;
  times.GoOn(0, At(0));
  times.Made(20, At(25), false);
  times.GoOn(10, At(20));
  EXPECT_EQ(times.TimeOf(20, At(99)), At(25));
}

TEST(CommitTimesTest, ManyCommits_KeepsTheStartTheNewestAndCheckpoints) {
  CommitTimes times;
  times.GoOn(0, At(0));
  times.Made(1, At(1), true);
  for (int i = 2; i < 200; ++i) times.Made(i, At(i), false);
  EXPECT_EQ(times.TimeOf(0, At(999)), At(0));
  EXPECT_EQ(times.TimeOf(1, At(999)), At(1));
  EXPECT_EQ(times.TimeOf(50, At(999)), At(1));
  EXPECT_EQ(times.TimeOf(199, At(999)), At(199));
  for (int i = 200; i < 400; ++i) times.Made(i, At(i), true);
  EXPECT_EQ(times.TimeOf(0, At(999)), At(0));
  EXPECT_EQ(times.TimeOf(399, At(999)), At(399));
}

}  // namespace
}  // namespace hvd::rendezvous::policy
