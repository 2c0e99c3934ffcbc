#include "worker_runtime/negotiation/signature_ids.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

Plan PlanOf(uint64_t sequence) {
  Plan plan;
  plan.sequence = sequence;
  return plan;
}

TEST(SignatureKeeperTest, Insert_AtCapacity_EvictsTheLeastRecentlyUsed) {
  SignatureIds keeper(2, 2);
  Plan plan = PlanOf(1);
  const SignatureId a = keeper.Insert(Sig("a"), plan);
  const SignatureId b = keeper.Insert(Sig("b"), plan);
  EXPECT_EQ(keeper.Use(MakeSignature("a")), a);
  keeper.Insert(Sig("c"), plan);
  EXPECT_EQ(plan.evicted_ids, std::vector<SignatureId>{b});
  EXPECT_EQ(keeper.Use(MakeSignature("b")), kNoSignatureId);
  EXPECT_EQ(keeper.Use(MakeSignature("a")), a);
}

TEST(SignatureKeeperTest, Insert_ChangedSignature_TakesTheNameOver) {
  SignatureIds keeper(2, 2);
  Plan plan = PlanOf(1);
  const SignatureId old_id = keeper.Insert(Sig("a"), plan);
  const SignatureId new_id = keeper.Insert(Sig("a", {3}), plan);
  EXPECT_NE(old_id, new_id);
  EXPECT_EQ(plan.evicted_ids, std::vector<SignatureId>{old_id});
  EXPECT_EQ(keeper.Use(MakeSignature("a")), kNoSignatureId);
  EXPECT_EQ(keeper.Use(MakeSignature("a", {3})), new_id);
}

TEST(SignatureKeeperTest, Resolve_EvictedId_WorksUntilAllRanksHaveSeenThePlan) {
  SignatureIds keeper(1, 2);
  Plan first = PlanOf(1), second = PlanOf(2);
  const SignatureId a = keeper.Insert(Sig("a"), first);
  keeper.Insert(Sig("b"), second);
  keeper.Acknowledge(0, 2);
  keeper.Acknowledge(1, 1);
  ASSERT_NE(keeper.Resolve(a), nullptr);
  EXPECT_EQ(keeper.Resolve(a)->name, "a");
  keeper.Acknowledge(1, 2);
  EXPECT_EQ(keeper.Resolve(a), nullptr);
  EXPECT_EQ(keeper.evicted_count(), 0u);
}

TEST(SignatureKeeperTest, Insert_NamesThatOccurOnce_DoNotPileUp) {
  SignatureIds keeper(8, 2);
  for (uint64_t sequence = 1; sequence <= 1000; ++sequence) {
    Plan plan = PlanOf(sequence);
    keeper.Insert(Sig(absl::StrCat("allreduce.noname.", sequence)), plan);
    keeper.Acknowledge(0, sequence);
    keeper.Acknowledge(1, sequence - 1);
  }
  EXPECT_LE(keeper.evicted_count(), 2u);
}

TEST(SignatureKeeperTest, Insert_CapacityZero_KeepsNothing) {
  SignatureIds keeper(0, 1);
  Plan plan = PlanOf(1);
  EXPECT_EQ(keeper.Insert(Sig("a"), plan), kNoSignatureId);
  EXPECT_EQ(keeper.Use(MakeSignature("a")), kNoSignatureId);
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
