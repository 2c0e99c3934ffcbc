#include "collectives/nccl/convert.h"

#include <cstring>

#include "collectives/float16.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

template <typename T>
T As(const NcclFactor& factor) {
  T value;
  std::memcpy(&value, factor.bytes, sizeof(value));
  return value;
}

TEST(ToNccl, NumbersOfTheInterface) {
  const std::pair<DataType, int> types[] = {{DataType::kInt8, 0},    {DataType::kUint8, 1},
                                            {DataType::kInt32, 2},   {DataType::kInt64, 4},
                                            {DataType::kFloat16, 6}, {DataType::kFloat32, 7},
                                            {DataType::kFloat64, 8}, {DataType::kBfloat16, 9}};
  const std::pair<ReduceOp, int> ops[] = {
      {ReduceOp::kSum, 0}, {ReduceOp::kProduct, 1}, {ReduceOp::kMax, 2}, {ReduceOp::kMin, 3}};
  for (const auto& [type, nccl_type] : types) {
    for (const auto& [op, nccl_op] : ops) {
      const auto reduction = ToNccl(type, op);
      ASSERT_TRUE(reduction.has_value());
      EXPECT_EQ(static_cast<int>(reduction->type), nccl_type) << NameOf(type);
      EXPECT_EQ(static_cast<int>(reduction->op), nccl_op) << NameOf(op);
    }
  }
}

TEST(ToNccl, Booleans_AreBytesOfWhichTheLargestIsOr) {
  const auto op_for = [](ReduceOp op) {
    EXPECT_EQ(ToNccl(DataType::kBool, op)->type, NcclType::kUint8);
    return ToNccl(DataType::kBool, op)->op;
  };
  EXPECT_EQ(op_for(ReduceOp::kSum), NcclOp::kMax);
  EXPECT_EQ(op_for(ReduceOp::kMax), NcclOp::kMax);
  EXPECT_EQ(op_for(ReduceOp::kMin), NcclOp::kMin);
  EXPECT_EQ(op_for(ReduceOp::kProduct), NcclOp::kMin);
}

TEST(ToNccl, Int16_IsNotThere) {
  EXPECT_FALSE(ToNccl(DataType::kInt16, ReduceOp::kSum).has_value());
}

TEST(ToNcclFactor, IsOneElementOfTheType) {
  EXPECT_EQ(As<double>(ToNcclFactor(DataType::kFloat64, 0.1)), 0.1);
  EXPECT_EQ(As<float>(ToNcclFactor(DataType::kFloat32, 0.1)), 0.1f);
  EXPECT_EQ(As<Float16>(ToNcclFactor(DataType::kFloat16, 0.5)).ToFloat(), 0.5f);
  EXPECT_EQ(As<Bfloat16>(ToNcclFactor(DataType::kBfloat16, -3)).ToFloat(), -3.0f);
}

TEST(FromNccl, CodesAreOurs) {
  const auto code = [](NcclResult result) { return FromNccl(result, "x", "y", "").code(); };
  EXPECT_EQ(code(NcclResult::kSuccess), absl::StatusCode::kOk);
  EXPECT_EQ(code(NcclResult::kInProgress), absl::StatusCode::kOk);
  EXPECT_EQ(code(NcclResult::kRemoteError), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(NcclResult::kSystemError), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(NcclResult::kTimeout), absl::StatusCode::kDeadlineExceeded);
  for (const NcclResult bug : {NcclResult::kUnhandledCudaError, NcclResult::kInternalError,
                               NcclResult::kInvalidArgument, NcclResult::kInvalidUsage}) {
    EXPECT_EQ(code(bug), absl::StatusCode::kInternal) << static_cast<int>(bug);
  }
}

TEST(FromNccl, TellsWhatAndWhy) {
  EXPECT_EQ(FromNccl(NcclResult::kRemoteError, "a call", "remote error", "socket closed"),
            absl::UnavailableError("a call: remote error (socket closed)"));
  EXPECT_EQ(FromNccl(NcclResult::kInternalError, "a call", "internal error", ""),
            absl::InternalError("a call: internal error"));
}

}  // namespace
}  // namespace hvd::collectives::nccl
