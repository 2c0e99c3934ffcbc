#include "worker_runtime/negotiation/mismatch.h"

#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

std::string Mismatch(const std::vector<SignaturePtr>& by_rank) {
  return FindMismatch(by_rank).value_or("");
}

TEST(MismatchTest, EqualRequests_Fit) {
  EXPECT_EQ(Mismatch({Sig("a"), Sig("a")}), "");
  EXPECT_EQ(Mismatch({Sig("a", {}), nullptr, Sig("a", {})}), "");
}

TEST(MismatchTest, TypeAndShape_SayWhoSentWhat) {
  EXPECT_EQ(Mismatch({Sig("grad", {3, 2}),
                      Sig("grad", {3, 2}, OpKind::kAllReduce, collectives::DataType::kFloat64),
                      Sig("grad", {3, 2})}),
            "Mismatched allreduce of 'grad': ranks 0 and 2 sent float32 [3, 2], "
            "rank 1 sent float64 [3, 2]");
  EXPECT_EQ(Mismatch({Sig("grad", {3, 2}), Sig("grad", {2, 3})}),
            "Mismatched allreduce of 'grad': rank 0 sent float32 [3, 2], "
            "rank 1 sent float32 [2, 3]");
}

TEST(MismatchTest, Operation_IsNamed) {
  EXPECT_EQ(Mismatch({Sig("x"), Sig("x", {2}, OpKind::kBroadcast)}),
            "Mismatched operations on 'x': rank 0 sent allreduce of float32 [2], "
            "rank 1 sent broadcast of float32 [2]");
}

TEST(MismatchTest, ReductionFactorsAndRoot_AreShownWhereTheyDiffer) {
  TensorSignature other = MakeSignature("x");
  other.reduction = Reduction::kMax;
  EXPECT_EQ(Mismatch({Sig("x"), Share(other)}),
            "Mismatched allreduce of 'x': rank 0 sent float32 [2] for sum, "
            "rank 1 sent float32 [2] for max");
  other = MakeSignature("x");
  other.prescale = 0.5;
  EXPECT_EQ(Mismatch({Sig("x"), Share(other)}),
            "Mismatched allreduce of 'x': rank 0 sent float32 [2] with prescale 1 and postscale 1, "
            "rank 1 sent float32 [2] with prescale 0.5 and postscale 1");
  TensorSignature third = MakeSignature("x");
  third.prescale = 1.0 / 3;
  other.prescale = 0.333333;
  EXPECT_EQ(Mismatch({Share(third), Share(other)}),
            "Mismatched allreduce of 'x': rank 0 sent float32 [2] with prescale "
            "0.33333333333333331 and postscale 1, rank 1 sent float32 [2] with prescale 0.333333 "
            "and postscale 1");
  other = MakeSignature("x", {2}, OpKind::kBroadcast);
  other.root_rank = 1;
  EXPECT_EQ(Mismatch({Sig("x", {2}, OpKind::kBroadcast), Share(other)}),
            "Mismatched broadcast of 'x': rank 0 sent float32 [2] with root rank 0, "
            "rank 1 sent float32 [2] with root rank 1");
}

TEST(MismatchTest, Meaning_IsShownWhereItOrTheOperationDiffers) {
  TensorSignature first = MakeSignature("x"), other = MakeSignature("x");
  first.meaning = "reduce to rank 0";
  other.meaning = "reduce to rank 1";
  EXPECT_EQ(Mismatch({Share(first), Share(other), Sig("x")}),
            "Mismatched allreduce of 'x': rank 0 sent float32 [2] as reduce to rank 0, "
            "rank 1 sent float32 [2] as reduce to rank 1, rank 2 sent float32 [2]");
  EXPECT_EQ(Mismatch({Share(first), Share(first)}), "");
  other.op = OpKind::kAllGather;
  EXPECT_EQ(Mismatch({Sig("x"), Share(other)}),
            "Mismatched operations on 'x': rank 0 sent allreduce of float32 [2], "
            "rank 1 sent allgather of float32 [2] as reduce to rank 1");
}

TEST(MismatchTest, Memory_IsShownWhereItDiffers) {
  TensorSignature other = MakeSignature("x");
  other.on_device = true;
  EXPECT_EQ(Mismatch({Sig("x"), Share(other)}),
            "Mismatched allreduce of 'x': rank 0 sent float32 [2] on the host, "
            "rank 1 sent float32 [2] on a GPU");
  EXPECT_EQ(Mismatch({Share(other), Share(other)}), "");
}

TEST(MismatchTest, Gathered_MayDifferInTheFirstDimensionOnly) {
  const OpKind op = OpKind::kAllGather;
  EXPECT_EQ(Mismatch({Sig("g", {0, 4}, op), Sig("g", {7, 4}, op)}), "");
  EXPECT_EQ(Mismatch({Sig("g", {1, 4}, op), Sig("g", {1, 5}, op)}),
            "Mismatched allgather of 'g': rank 0 sent float32 [1, 4], rank 1 sent float32 [1, 5]");
  EXPECT_EQ(Mismatch({Sig("g", {}, op), Sig("g", {}, op)}),
            "Can't run allgather of 'g': a tensor needs at least one dimension, but "
            "ranks 0 and 1 sent float32 []");
}

TEST(MismatchTest, JoinedRank_StopsAllButAllReduce) {
  EXPECT_EQ(Mismatch({Sig("b", {2}, OpKind::kBroadcast), nullptr}),
            "Can't run broadcast of 'b': rank 1 has joined, and only allreduce goes on without "
            "the data of all ranks");
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
