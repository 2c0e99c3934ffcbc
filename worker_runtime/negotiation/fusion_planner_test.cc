#include "worker_runtime/negotiation/fusion_planner.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

// "a,c b": the names, batch by batch.
std::string Fuse(const std::vector<TensorSignature>& signatures, size_t threshold,
                 const std::vector<size_t>& groups = {}, size_t large = kLargeTensorBytes) {
  std::vector<PlannedTensor> tensors;
  for (const TensorSignature& signature : signatures) tensors.push_back(Planned(Share(signature)));
  std::string text;
  for (const Batch& batch : PlanFusion(std::move(tensors), threshold, groups, large)) {
    absl::StrAppend(&text, text.empty() ? "" : " ");
    for (size_t i = 0; i < batch.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", batch[i].signature->name);
    }
  }
  return text;
}

TensorSignature Floats(std::string name, int64_t count) {
  return MakeSignature(std::move(name), {count});
}

TEST(FusionPlannerTest, UpToThreshold_TensorsTravelTogether) {
  EXPECT_EQ(Fuse({Floats("a", 10), Floats("b", 10), Floats("c", 10)}, 80), "a,b c");
  EXPECT_EQ(Fuse({Floats("a", 10), Floats("b", 10), Floats("c", 10)}, 79), "a b c");
  EXPECT_EQ(Fuse({Floats("a", 10), Floats("b", 10)}, 0), "a b");
}

TEST(FusionPlannerTest, Groups_TravelWithinThemselves) {
  const std::vector<TensorSignature> tensors = {Floats("a", 1), Floats("b", 1), Floats("c", 1),
                                                Floats("d", 1), Floats("e", 1)};
  EXPECT_EQ(Fuse(tensors, 1000, {1, 1, 2, 2, 0}), "a,b c,d e");
  EXPECT_EQ(Fuse(tensors, 1000, {0, 1, 0, 1, 0}), "a,c,e b,d");
  EXPECT_EQ(Fuse(tensors, 4, {1, 1, 2, 2, 0}), "a b c d e");
}

TEST(FusionPlannerTest, OtherKindsBetween_AreLookedPast) {
  TensorSignature b = Floats("b", 10);
  b.type = collectives::DataType::kFloat64;
  TensorSignature d = b;
  d.name = "d";
  EXPECT_EQ(Fuse({Floats("a", 10), b, Floats("c", 10), d}, 1000), "a,c b,d");
}

TEST(FusionPlannerTest, ReductionFactorsAndMemory_KeepApart) {
  TensorSignature b = Floats("b", 10), c = b, d = b, e = b;
  b.reduction = Reduction::kMax;
  c.prescale = 0.5;
  d.postscale = 0.5;
  e.on_device = true;
  c.name = "c";
  d.name = "d";
  e.name = "e";
  EXPECT_EQ(Fuse({Floats("a", 10), b, c, d, e}, 1000), "a b c d e");
}

TEST(FusionPlannerTest, AdasumAndOtherOperations_StayAlone) {
  TensorSignature adasum = Floats("adasum", 10), adasum2 = Floats("adasum2", 10);
  adasum.reduction = adasum2.reduction = Reduction::kAdasum;
  TensorSignature gather = Floats("gather", 10), gather2 = Floats("gather2", 10);
  gather.op = gather2.op = OpKind::kAllGather;
  EXPECT_EQ(Fuse({adasum, adasum2, gather, gather2}, 1000), "adasum adasum2 gather gather2");
}

TEST(FusionPlannerTest, LargeTensors_GoAlone) {
  const int64_t large = kLargeTensorBytes / 4;
  EXPECT_EQ(Fuse({Floats("a", 1), Floats("big", large), Floats("b", 1)}, 1 << 30), "a,b big");
  EXPECT_EQ(Fuse({Floats("a", 1), Floats("b", large - 1)}, 1 << 30), "a,b");
  EXPECT_EQ(
      Fuse({Floats("a", 1), Floats("big", large), Floats("b", 1)}, 1 << 30, {}, kLargestBatchBytes),
      "a,big,b")
      << "fusion costs no copies";
}

TEST(FusionPlannerTest, EmptyTensors_Fuse) {
  EXPECT_EQ(Fuse({Floats("a", 0), Floats("b", 0)}, 100), "a,b");
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
