#include "worker_runtime/negotiation/op_kind.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::negotiation {
namespace {

TEST(OpTraitsTest, Table_IsInTheOrderOfTheNumbers) {
  for (int i = 0; i < kOpKindCount; ++i) {
    EXPECT_EQ(static_cast<int>(kOpTraits[i].kind()), i) << kOpTraits[i].name();
  }
  EXPECT_EQ(static_cast<int>(OpKind::kCommit), kOpKindCount - 1);
}

TEST(OpTraitsTest, Names) {
  EXPECT_EQ(NameOf(OpKind::kAllReduce), "allreduce");
  EXPECT_EQ(NameOf(OpKind::kCommit), "commit");
  EXPECT_EQ(NameOf(static_cast<OpKind>(kOpKindCount)), "unknown operation");
  EXPECT_EQ(NameOf(static_cast<OpKind>(-1)), "unknown operation");
}

// The assumptions of the code that uses the traits.
TEST(OpTraitsTest, Table_TraitsFitTogether) {
  const OpTrait of_data[] = {OpTrait::kNeedsInput,  OpTrait::kKeepsShape, OpTrait::kRowsDiffer,
                             OpTrait::kDividesRows, OpTrait::kHasSplits,  OpTrait::kHasRoot,
                             OpTrait::kReduces,     OpTrait::kFuses,      OpTrait::kOutlivesJoin};
  for (const OpTraits& op : kOpTraits) {
    for (const OpTrait trait : of_data) {
      EXPECT_TRUE(!op.Has(trait) || op.Has(OpTrait::kCarriesData)) << op.name();
    }
    // The plan contains splits in place of the numbers of rows.
    EXPECT_TRUE(!op.Has(OpTrait::kHasSplits) || op.Has(OpTrait::kRowsDiffer)) << op.name();
    // Reduced tensors have the same size on all ranks.
    EXPECT_FALSE(op.Has(OpTrait::kReduces) && op.Has(OpTrait::kRowsDiffer)) << op.name();
    EXPECT_FALSE(op.Has(OpTrait::kKeepsShape) && op.Has(OpTrait::kRowsDiffer)) << op.name();
    EXPECT_TRUE(!op.Has(OpTrait::kTakesAdasum) || op.Has(OpTrait::kReduces)) << op.name();
    // A rank that has joined contributes the neutral element.
    EXPECT_TRUE(!op.Has(OpTrait::kOutlivesJoin) || op.Has(OpTrait::kReduces)) << op.name();
    // Tensors are fused by type, reduction and factors.
    EXPECT_TRUE(!op.Has(OpTrait::kFuses) || op.Has(OpTrait::kReduces)) << op.name();
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
