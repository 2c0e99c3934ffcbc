#include "worker_runtime/negotiation/coordinator.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "worker_runtime/negotiation/coordinator_test_util.h"
#include "worker_runtime/negotiation/known_signatures.h"
#include "worker_runtime/negotiation/message_codec.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

// "a,b c": batches by name.
std::string Names(const Plan& plan) {
  return absl::StrJoin(plan.batches, " ", [](std::string* out, const Batch& batch) {
    absl::StrAppend(out, absl::StrJoin(batch, ",", [](std::string* o, const PlannedTensor& t) {
                      absl::StrAppend(o, t.signature->name);
                    }));
  });
}

class CoordinatorTest : public testing::Test {
 protected:
  void Submit(int rank, std::vector<TensorSignature> group, int now = 0, uint64_t seen = 0) {
    ASSERT_TRUE(coordinator_.Announce(rank, Submission(group, seen), At(now)).ok());
  }
  void Block(int rank, std::vector<std::string> names, uint64_t seen, int now = 0) {
    Announcement announcement;
    announcement.seen_sequence = seen;
    announcement.blocked_on = std::move(names);
    ASSERT_TRUE(coordinator_.Announce(rank, announcement, At(now)).ok());
  }
  Coordinator coordinator_{Options(2)};
};

TEST_F(CoordinatorTest, Plan_ComesWhenAllRanksHaveAnnounced) {
  Submit(0, {MakeSignature("a")});
  EXPECT_FALSE(coordinator_.NextPlan(At(0)).has_value());
  Submit(1, {MakeSignature("a")});
  const auto plan = coordinator_.NextPlan(At(0));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->sequence, 1u);
  EXPECT_EQ(Names(*plan), "a");
  EXPECT_NE(plan->batches[0][0].new_id, kNoSignatureId);
  EXPECT_FALSE(coordinator_.NextPlan(At(0)).has_value());
}

TEST_F(CoordinatorTest, Commit_OneRankKnowsOfAChange_AllLearnIt) {
  const TensorSignature commit = MakeSignature("commit", {}, OpKind::kCommit);
  for (int rank : {0, 1}) Submit(rank, {commit, MakeSignature("a")});
  const auto before = coordinator_.NextPlan(At(0));
  EXPECT_FALSE(before->batches[0][0].world_is_changing);
  const SignatureId id = before->batches[0][0].new_id;
  EXPECT_NE(id, kNoSignatureId);
  Announcement by_id;
  by_id.groups = {{AnnouncedTensor{id, nullptr}}};
  ASSERT_TRUE(coordinator_.Announce(0, by_id, At(0)).ok());
  by_id.world_is_changing = true;
  ASSERT_TRUE(coordinator_.Announce(1, by_id, At(0)).ok());
  const auto after = coordinator_.NextPlan(At(0));
  EXPECT_EQ(after->batches[0][0].known_id, id);
  EXPECT_TRUE(after->batches[0][0].world_is_changing);
}

TEST_F(CoordinatorTest, Commit_ChangeWasAnnouncedBefore_IsNotForgotten) {
  Announcement change;
  change.world_is_changing = true;
  ASSERT_TRUE(coordinator_.Announce(1, change, At(0)).ok());
  EXPECT_FALSE(coordinator_.NextPlan(At(0)).has_value());
  for (int rank : {0, 1}) Submit(rank, {MakeSignature("c", {}, OpKind::kCommit)});
  for (int rank : {0, 1}) Submit(rank, {MakeSignature("a")});
  const auto plan = coordinator_.NextPlan(At(0));
  EXPECT_TRUE(plan->batches[0][0].world_is_changing);
  EXPECT_FALSE(plan->batches[1][0].world_is_changing);
}

TEST_F(CoordinatorTest, KnownSignature_TravelsAsItsId) {
  for (int rank : {0, 1}) Submit(rank, {MakeSignature("a")});
  const SignatureId id = coordinator_.NextPlan(At(0))->batches[0][0].new_id;
  Announcement by_id;
  by_id.seen_sequence = 1;
  by_id.groups = {{AnnouncedTensor{id, nullptr}}};
  for (int rank : {0, 1}) ASSERT_TRUE(coordinator_.Announce(rank, by_id, At(0)).ok());
  const auto plan = coordinator_.NextPlan(At(0));
  EXPECT_EQ(plan->batches[0][0].known_id, id);
  EXPECT_EQ(plan->batches[0][0].new_id, kNoSignatureId);
}

TEST_F(CoordinatorTest, Announce_UnknownId_IsRefused) {
  Announcement announcement;
  announcement.groups = {{AnnouncedTensor{42, nullptr}}};
  EXPECT_EQ(coordinator_.Announce(1, announcement, At(0)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorTest, Mismatch_FailsTheWholeGroupAndNothingElse) {
  for (int rank : {0, 1}) {
    Submit(rank, {MakeSignature("a", {2 + rank}), MakeSignature("b")});
    Submit(rank, {MakeSignature("c")});
  }
  const auto plan = coordinator_.NextPlan(At(0));
  EXPECT_EQ(Names(*plan), "c");
  ASSERT_EQ(plan->failures.size(), 1u);
  EXPECT_EQ(plan->failures[0].names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(plan->failures[0].message,
            "Mismatched allreduce of 'a': rank 0 sent float32 [2], rank 1 sent float32 [3] "
            "(the whole group of 2 tensors fails)");
}

TEST_F(CoordinatorTest, CycleTime_GathersTensorsForFusion) {
  CoordinatorOptions options = Options(1);
  options.settings.cycle_time = absl::Milliseconds(10);
  Coordinator coordinator(options);
  ASSERT_TRUE(coordinator.Announce(0, Submission({MakeSignature("a")}), At(0)).ok());
  EXPECT_FALSE(coordinator.NextPlan(At(0)).has_value());
  EXPECT_EQ(coordinator.NextDeadline(), At(10));
  ASSERT_TRUE(coordinator.Announce(0, Submission({MakeSignature("b")}), At(9)).ok());
  EXPECT_FALSE(coordinator.NextPlan(At(9)).has_value());
  EXPECT_EQ(Names(*coordinator.NextPlan(At(10))), "a,b");
  // As much as one batch holds does not wait.
  ASSERT_TRUE(coordinator.Announce(0, Submission({MakeSignature("c", {256})}), At(20)).ok());
  EXPECT_EQ(Names(*coordinator.NextPlan(At(20))), "c");
  EXPECT_EQ(coordinator.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(CoordinatorTest, PerRankParts_AreInThePlan) {
  TensorSignature even = MakeSignature("t", {4, 2}, OpKind::kAllToAll), uneven = even;
  uneven.splits = {3, 0};
  Submit(0, {MakeSignature("g", {3, 2}, OpKind::kAllGather), even});
  Submit(1, {MakeSignature("g", {0, 2}, OpKind::kAllGather), uneven});
  const auto plan = coordinator_.NextPlan(At(0));
  ASSERT_EQ(Names(*plan), "g t");
  EXPECT_EQ(plan->batches[0][0].first_dims, (std::vector<int64_t>{3, 0}));
  const PlannedTensor& exchange = plan->batches[1][0];
  EXPECT_EQ(exchange.received_splits, (std::vector<int32_t>{2, 3})) << "those of rank 0";
  EXPECT_FALSE(exchange.moves_nothing);
  const auto of_rank_1 = DecodePlan(Encode(*plan, 1), 2, KnownSignatures());
  ASSERT_TRUE(of_rank_1.ok()) << of_rank_1.status();
  EXPECT_EQ(of_rank_1->batches[1][0].received_splits, (std::vector<int32_t>{2, 0}));
}

TEST_F(CoordinatorTest, EmptyAllToAll_IsMarkedAsMovingNothing) {
  TensorSignature none = MakeSignature("t", {4, 2}, OpKind::kAllToAll);
  none.splits = {0, 0};
  for (int rank : {0, 1}) Submit(rank, {none});
  EXPECT_TRUE(coordinator_.NextPlan(At(0))->batches[0][0].moves_nothing);
  // This rank neither sends nor receives, but another does.
  TensorSignature own = none;
  own.splits = {0, 1};
  Submit(0, {none});
  Submit(1, {own});
  EXPECT_FALSE(coordinator_.NextPlan(At(0))->batches[0][0].moves_nothing);
  for (int rank : {0, 1}) Submit(rank, {MakeSignature("r", {4, 0}, OpKind::kAllToAll)});
  EXPECT_TRUE(coordinator_.NextPlan(At(0))->batches[0][0].moves_nothing) << "rows of no bytes";
}

TEST_F(CoordinatorTest, Join_LetsAllReduceGoOnAndTellsTheLast) {
  const TensorSignature join = MakeSignature("join", {}, OpKind::kJoin);
  Submit(1, {join});
  Submit(0, {MakeSignature("a")});
  auto plan = coordinator_.NextPlan(At(0));
  EXPECT_EQ(Names(*plan), "a");
  EXPECT_EQ(plan->batches[0][0].absent_ranks, std::vector<int>{1});
  Submit(0, {MakeSignature("b", {2}, OpKind::kBroadcast)});
  plan = coordinator_.NextPlan(At(0));
  ASSERT_EQ(plan->failures.size(), 1u);
  EXPECT_TRUE(absl::StrContains(plan->failures[0].message, "rank 1 has joined"));
  Submit(0, {join});
  plan = coordinator_.NextPlan(At(0));
  EXPECT_EQ(plan->batches[0][0].last_joined_rank, 0);
}

TEST_F(CoordinatorTest, Deadlock_FailsWhatRanksWaitForAfterPatience) {
  Submit(0, {MakeSignature("a")});
  Submit(1, {MakeSignature("b")});
  Block(0, {"a"}, 0, 100);
  Block(1, {"b"}, 0, 200);
  EXPECT_FALSE(coordinator_.NextPlan(At(200)).has_value());
  EXPECT_EQ(coordinator_.NextDeadline(), At(5200));
  const auto plan = coordinator_.NextPlan(At(5200));
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->failures.size(), 1u);
  EXPECT_EQ(plan->failures[0].names, (std::vector<std::string>{"a", "b"}));
  for (int rank : {0, 1}) Submit(rank, {MakeSignature("a")}, 6000, 1);
  EXPECT_EQ(Names(*coordinator_.NextPlan(At(6000))), "a");
}

TEST_F(CoordinatorTest, Deadlock_OtherThreadSubmitsInTime_IsNone) {
  Submit(0, {MakeSignature("a")});
  Submit(1, {MakeSignature("b")});
  Block(0, {"a"}, 0);
  Block(1, {"b"}, 0);
  EXPECT_FALSE(coordinator_.NextPlan(At(0)).has_value());
  Submit(1, {MakeSignature("a")}, 4000);
  EXPECT_EQ(Names(*coordinator_.NextPlan(At(4000))), "a");
  EXPECT_FALSE(coordinator_.NextPlan(At(5100)).has_value());
}

TEST_F(CoordinatorTest, Stall_IsReported) {
  CoordinatorOptions options = Options(2);
  options.settings.stall_shutdown_time = absl::Seconds(90);
  Coordinator coordinator(options);
  ASSERT_TRUE(coordinator.Announce(0, Submission({MakeSignature("a")}), At(0)).ok());
  EXPECT_FALSE(coordinator.NextPlan(At(0)).has_value());
  EXPECT_EQ(coordinator.NextDeadline(), At(60000));
  EXPECT_FALSE(coordinator.NextPlan(At(60000)).has_value());
  const std::optional<StallReport> warning = coordinator.TakeStall();
  ASSERT_TRUE(warning.has_value());
  EXPECT_FALSE(warning->give_up);
  EXPECT_FALSE(coordinator.TakeStall().has_value());
  EXPECT_FALSE(coordinator.NextPlan(At(90000)).has_value());
  const std::optional<StallReport> last = coordinator.TakeStall();
  EXPECT_TRUE(last.has_value() && last->give_up);
  EXPECT_EQ(coordinator.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(CoordinatorTest, End_IsTheLastPlanAndRunsWhatIsReady) {
  for (int rank : {0, 1}) Submit(rank, {MakeSignature("a")});
  Announcement leaving;
  leaving.end = EpochEnd{1, absl::AbortedError("left"), EndKind::kLeft};
  ASSERT_TRUE(coordinator_.Announce(1, leaving, At(0)).ok());
  const auto plan = coordinator_.NextPlan(At(0));
  EXPECT_EQ(Names(*plan), "a");
  ASSERT_TRUE(plan->end.has_value());
  EXPECT_EQ(plan->end->rank, 1);
  EXPECT_FALSE(coordinator_.NextPlan(At(0)).has_value());
}

TEST_F(CoordinatorTest, End_OfABrokenRank_RunsNothingMore) {
  for (int rank : {0, 1}) Submit(rank, {MakeSignature("a")});
  Announcement broken;
  broken.end = EpochEnd{1, absl::UnavailableError("broken")};
  ASSERT_TRUE(coordinator_.Announce(1, broken, At(0)).ok());
  const auto plan = coordinator_.NextPlan(At(0));
  EXPECT_TRUE(plan->batches.empty());
  EXPECT_EQ(plan->end->status, broken.end->status);
}

TEST_F(CoordinatorTest, OrderTimeline_MakesAPlanOfItsOwn_Once) {
  coordinator_.OrderTimeline({1, true, false});
  const auto plan = coordinator_.NextPlan(At(0));
  ASSERT_TRUE(plan.has_value());
  ASSERT_TRUE(plan->timeline.has_value());
  EXPECT_TRUE(plan->timeline->records);
  EXPECT_TRUE(plan->batches.empty());
  EXPECT_FALSE(coordinator_.NextPlan(At(1)).has_value());
}

TEST(CoordinatorGroupsTest, GroupsStayAlone_AreFusedWithNoOthers) {
  for (bool alone : {false, true}) {
    CoordinatorOptions options = Options(1);
    options.settings.disable_group_fusion = alone;
    Coordinator coordinator(options);
    const auto submit = [&](std::vector<TensorSignature> group) {
      ASSERT_TRUE(coordinator.Announce(0, Submission(group), At(0)).ok());
    };
    submit({MakeSignature("a"), MakeSignature("b")});
    submit({MakeSignature("c")});
    submit({MakeSignature("d"), MakeSignature("e")});
    submit({MakeSignature("f")});
    const auto plan = coordinator.NextPlan(At(0));
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(Names(*plan), alone ? "a,b c,f d,e" : "a,b,c,d,e,f");
  }
}

TEST(CoordinatorTunerTest, Steps_AreMeasured_AndThenRunAsTheTunerSays) {
  CoordinatorOptions options = Options(1);
  options.settings.fusion_threshold_bytes = size_t{128} << 20;
  options.tuner.emplace();
  options.tuner->autotune.warmup_samples = 0;
  options.tuner->autotune.steps_per_sample = 2;
  options.tuner->autotune.max_samples = 4;
  options.tuner->tune_cycle_time = false;
  Coordinator coordinator(options);
  std::vector<tuning::TuningSample> samples;
  std::set<std::string> plans;  // what was made of the same step
  for (int step = 0; step < 20; ++step) {
    std::vector<TensorSignature> tensors;
    for (int i = 0; i < 8; ++i) tensors.push_back(MakeSignature(absl::StrCat("t", i), {50000}));
    ASSERT_TRUE(coordinator.Announce(0, Submission(tensors), At(10 * step)).ok());
    const auto plan = coordinator.NextPlan(At(10 * step));
    ASSERT_TRUE(plan.has_value());
    plans.insert(Names(*plan));
    for (const tuning::TuningSample& sample : coordinator.TakeTuningSamples())
      samples.push_back(sample);
  }
  ASSERT_EQ(samples.size(), 5u);
  EXPECT_TRUE(samples.back().is_best);
  EXPECT_DOUBLE_EQ(samples.front().score, 8 * 200000 / 0.010);
  EXPECT_GT(plans.size(), 1u);
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
