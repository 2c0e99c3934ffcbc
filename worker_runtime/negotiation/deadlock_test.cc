#include "worker_runtime/negotiation/deadlock.h"

#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

const absl::Time kStart = absl::UnixEpoch();
absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

// Rank 0 has submitted "a", rank 1 "b".
class DeadlockTest : public testing::Test {
 protected:
  DeadlockTest() {
    EXPECT_TRUE(table_.Add(0, {Sig("a")}, At(0)).ok());
    EXPECT_TRUE(table_.Add(1, {Sig("b", {3})}, At(0)).ok());
  }
  // Returns the deadline of the detector, updated at second `now`.
  absl::Time Deadline(int now, uint64_t last_sequence = 4) {
    detector_.Update(table_, last_sequence, At(now));
    return detector_.deadline();
  }

  Readiness table_{2};
  DeadlockDetector detector_{2, absl::Seconds(5)};
};

TEST_F(DeadlockTest, AllBlockedOnDifferentNames_IsOneAfterPatience) {
  detector_.SetBlocked(0, {"a"}, 4);
  EXPECT_EQ(Deadline(1), absl::InfiniteFuture());
  detector_.SetBlocked(1, {"b"}, 4);
  EXPECT_EQ(Deadline(2), At(7));
  EXPECT_EQ(Deadline(3), At(7));
  const Failure failure = detector_.Break(table_);
  EXPECT_EQ(failure.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(failure.message,
            "Mismatched order of operations: no rank can go on: rank 0 waits for allreduce 'a' "
            "float32 [2], which rank 1 did not submit; rank 1 waits for allreduce 'b' float32 [3], "
            "which rank 0 did not submit. All ranks must submit the same names before they wait");
  EXPECT_TRUE(table_.waiting().empty());
  EXPECT_EQ(Deadline(8), absl::InfiniteFuture());
}

TEST_F(DeadlockTest, PlanOnItsWay_IsNone) {
  detector_.SetBlocked(0, {"a"}, 4);
  detector_.SetBlocked(1, {"b"}, 3);
  EXPECT_EQ(Deadline(1), absl::InfiniteFuture());
}

TEST_F(DeadlockTest, NewSubmission_RestartsTheTimeout) {
  detector_.SetBlocked(0, {"a"}, 4);
  detector_.SetBlocked(1, {"b"}, 4);
  EXPECT_EQ(Deadline(1), At(6));
  detector_.SetBlocked(1, {}, 4);
  EXPECT_EQ(Deadline(2), absl::InfiniteFuture());
  detector_.SetBlocked(1, {"b"}, 4);
  EXPECT_EQ(Deadline(4), At(9));
}

TEST_F(DeadlockTest, BlockedOnAFinishedOperation_IsNoDeadlock) {
  detector_.SetBlocked(0, {"a"}, 4);
  detector_.SetBlocked(1, {"done long ago"}, 4);
  EXPECT_EQ(Deadline(1), absl::InfiniteFuture());
}

TEST_F(DeadlockTest, JoinedRank_IsBlockedButNotFailed) {
  Readiness table(3);
  ASSERT_TRUE(table.Add(0, {Sig("a")}, At(0)).ok());
  ASSERT_TRUE(table.Add(1, {Sig("b")}, At(0)).ok());
  ASSERT_TRUE(table.Add(2, {Sig("join", {}, OpKind::kJoin)}, At(0)).ok());
  DeadlockDetector detector(3, absl::Seconds(5));
  detector.SetBlocked(0, {"a"}, 1);
  detector.SetBlocked(1, {"b"}, 1);
  detector.SetBlocked(2, {"join"}, 1);
  detector.Update(table, 1, At(0));
  ASSERT_EQ(detector.deadline(), At(5));
  EXPECT_EQ(detector.Break(table).names, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(table.waiting().contains("join"));
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
