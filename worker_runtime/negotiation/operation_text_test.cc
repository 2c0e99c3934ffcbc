#include "worker_runtime/negotiation/operation_text.h"

#include "gtest/gtest.h"

namespace hvd::worker_runtime::negotiation {
namespace {

TEST(OperationText, SaysTheOperationOnce) {
  EXPECT_EQ(OperationText(OpKind::kAllReduce, "allreduce.grad.w"), "allreduce 'grad.w'");
  EXPECT_EQ(OperationText(OpKind::kAllGather, "grouped_allgather.x_1of2"), "allgather 'x_1of2'");
}

TEST(OperationText, LeavesOtherNamesAlone) {
  EXPECT_EQ(OperationText(OpKind::kAllGather, "allreduce.x"), "allgather 'allreduce.x'");
  EXPECT_EQ(OperationText(OpKind::kBarrier, "barrier"), "barrier 'barrier'");
  EXPECT_EQ(OperationText(OpKind::kBroadcast, ""), "broadcast ''");
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
