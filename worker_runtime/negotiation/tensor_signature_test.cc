#include "worker_runtime/negotiation/tensor_signature.h"

#include <limits>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::negotiation {
namespace {

TEST(TensorSignatureTest, Counts_ScalarEmptyAndMatrix_AreExact) {
  TensorSignature signature;
  EXPECT_EQ(ByteCount(signature), 4u);
  EXPECT_EQ(RowBytes(signature), 4u);
  signature.shape = {3, 2};
  EXPECT_EQ(ByteCount(signature), 24u);
  EXPECT_EQ(RowBytes(signature), 8u);
  signature.shape = {0, 5};
  EXPECT_EQ(ByteCount(signature), 0u);
  EXPECT_EQ(RowBytes(signature), 20u);
}

TEST(TensorSignatureTest, IsSaneShape_NegativeOrTooLarge_IsNot) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(IsSaneShape({3, 0, 2}, collectives::DataType::kFloat64));
  EXPECT_FALSE(IsSaneShape({3, -1}, collectives::DataType::kFloat32));
  EXPECT_FALSE(IsSaneShape({kHuge}, collectives::DataType::kFloat32));
  EXPECT_FALSE(IsSaneShape({0, kHuge, kHuge}, collectives::DataType::kUint8));
}

TEST(TensorSignatureTest, Equality_EachField_Matters) {
  const TensorSignature base;
  TensorSignature other;
  EXPECT_TRUE(base == other);
  other.name = "x";
  EXPECT_TRUE(base != other);
  other = base;
  other.postscale = 2;
  EXPECT_TRUE(base != other);
  other = base;
  other.splits = {1};
  EXPECT_TRUE(base != other);
}

TEST(TensorSignatureTest, RanksText_ShortAndLong_AreReadable) {
  EXPECT_EQ(RanksText({3}), "rank 3");
  EXPECT_EQ(RanksText({0, 2, 5}), "ranks 0, 2 and 5");
  EXPECT_EQ(RanksText({1, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
            "ranks 1, 3, 4, 5, 6, 7, 8, 9 and 2 others");
  EXPECT_EQ(ShapeText({}), "[]");
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
