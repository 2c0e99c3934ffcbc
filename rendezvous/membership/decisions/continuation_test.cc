#include "rendezvous/membership/decisions/continuation.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

using testing::HasSubstr;

// After world 1, which began with commit 5 and has just broken.
class ContinuationTest : public testing::Test {
 protected:
  ContinuationTest() {
    limits_.failures_without_progress = 3;
    epochs_.current = Epoch(1);
    epochs_.formed_commit = 5;
    epochs_.formed_at = now_ - absl::Seconds(1);
    epochs_.failed_world = true;
  }

  bool Decide(uint64_t commit, bool some_fail = false) {
    Continuation continuation(limits_, some_fail, &epochs_);
    const bool may_go_on = continuation.Decide(commit, now_);
    limit_reached_ = continuation.limit_reached();
    return may_go_on;
  }

  const absl::Time now_ = absl::UnixEpoch();
  policy::ElasticSpec limits_;
  Epochs epochs_;
  std::string limit_reached_;
};

TEST_F(ContinuationTest, Failures_WithoutACommitInBetween_ReachTheLimit) {
  EXPECT_TRUE(Decide(5));
  EXPECT_TRUE(Decide(5));
  EXPECT_FALSE(Decide(5));
  EXPECT_THAT(limit_reached_, HasSubstr("3 failures in a row without a commit in between"));
}

TEST_F(ContinuationTest, Failures_NewerCommit_ResetsTheCount) {
  EXPECT_TRUE(Decide(5));
  EXPECT_TRUE(Decide(5));
  EXPECT_TRUE(Decide(6));
  EXPECT_EQ(epochs_.without_progress, 0);
}

TEST_F(ContinuationTest, Failures_CommitOfAPlannedWorldInBetween_ResetsTheCount) {
  EXPECT_TRUE(Decide(5));
  EXPECT_TRUE(Decide(5));
  epochs_.failed_world = false;
  EXPECT_TRUE(Decide(6));
  epochs_.formed_commit = 6;
  epochs_.failed_world = true;
  EXPECT_TRUE(Decide(6));
  EXPECT_EQ(limit_reached_, "");
}

TEST_F(ContinuationTest, LossOfAHost_IsNotCountedAsFailureWithoutProgress) {
  epochs_.lost_hosts = true;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Decide(5));
}

TEST_F(ContinuationTest, LimitReached_ButAnExitIsAwaited_NotYet) {
  epochs_.without_progress = 2;
  EXPECT_FALSE(Decide(5, /*some_fail=*/true));
  EXPECT_EQ(limit_reached_, "") << "the verdict has the last output of the worker that fails";
  EXPECT_FALSE(Decide(5));
  EXPECT_NE(limit_reached_, "");
}

TEST_F(ContinuationTest, ResetLimit_IsANumberOfWorlds) {
  limits_.reset_limit = 1;
  EXPECT_TRUE(Decide(6));
  epochs_.current = Epoch(2);
  EXPECT_FALSE(Decide(6));
  EXPECT_THAT(limit_reached_, HasSubstr("1 reset, the most that the reset limit allows"));
}

}  // namespace
}  // namespace hvd::rendezvous::membership::decisions
