#include "worker_runtime/negotiation/known_signatures.h"

#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

Plan PlanThatAdds(std::vector<PlannedTensor> tensors, std::vector<SignatureId> evicted = {}) {
  Plan plan;
  plan.batches.push_back(std::move(tensors));
  plan.evicted_ids = std::move(evicted);
  return plan;
}

TEST(KnownSignaturesTest, Find_AfterApply_NeedsAnEqualSignature) {
  KnownSignatures known;
  known.Apply(PlanThatAdds({Planned(Sig("a"), 1), Planned(Sig("once"))}));
  EXPECT_EQ(known.Find(MakeSignature("a")), 1u);
  EXPECT_EQ(known.Find(MakeSignature("a", {3})), kNoSignatureId);
  EXPECT_EQ(known.Find(MakeSignature("once")), kNoSignatureId);
  EXPECT_EQ(known.Get(1)->name, "a");
  EXPECT_EQ(known.Get(2), nullptr);
}

TEST(KnownSignaturesTest, Apply_NewSignatureOfAName_ReplacesTheOld) {
  KnownSignatures known;
  known.Apply(PlanThatAdds({Planned(Sig("a"), 1)}));
  known.Apply(PlanThatAdds({Planned(Sig("a", {3}), 2)}, {1}));
  EXPECT_EQ(known.Find(MakeSignature("a", {3})), 2u);
  EXPECT_EQ(known.Find(MakeSignature("a")), kNoSignatureId);
  EXPECT_EQ(known.Get(1), nullptr);
}

TEST(KnownSignaturesTest, Apply_EvictedInTheSamePlan_IsForgotten) {
  KnownSignatures known;
  known.Apply(PlanThatAdds({Planned(Sig("a"), 1), Planned(Sig("b"), 2)}, {1}));
  EXPECT_EQ(known.Find(MakeSignature("a")), kNoSignatureId);
  EXPECT_EQ(known.Find(MakeSignature("b")), 2u);
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
