#include "worker_runtime/engine/request.h"

#include <limits>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

constexpr int kSize = 2;
float data[16];

TensorRequest Good(negotiation::OpKind op = negotiation::OpKind::kAllReduce) {
  TensorRequest request;
  request.name = "x";
  request.op = op;
  request.shape = {4, 2};
  request.input = data;
  return request;
}

std::string Why(const TensorRequest& request) {
  const absl::Status status = CheckRequest(request, request, kSize);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(CheckRequestTest, GoodRequestsOfAllKinds_Pass) {
  for (int op = 0; op < negotiation::kOpKindCount; ++op)
    EXPECT_EQ(Why(Good(static_cast<negotiation::OpKind>(op))), "");
  TensorRequest bare;
  bare.name = "b";
  bare.op = negotiation::OpKind::kBarrier;
  EXPECT_EQ(Why(bare), "");
}

TEST(CheckRequestTest, KindsShapeAndFactors_AreChecked) {
  TensorRequest request = Good();
  request.name = "";
  EXPECT_EQ(Why(request), "a request needs a name");
  request = Good();
  request.name = std::string(kMostNameBytes, 'n');
  EXPECT_EQ(Why(request), "");
  request.name += "n";
  EXPECT_EQ(Why(request), "a name of 8388609 bytes is too long: the limit is 8388608");
  request = Good();
  request.type = static_cast<collectives::DataType>(77);
  EXPECT_EQ(Why(request), "allreduce of 'x': no such data type");
  request = Good();
  request.shape = {-1};
  EXPECT_EQ(Why(request), "allreduce of 'x': impossible shape [-1]");
  request = Good();
  request.postscale = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Why(request), "allreduce of 'x': a scale factor is not a number");
  request = Good();
  request.input = nullptr;
  EXPECT_EQ(Why(request), "allreduce of 'x': there is no input");
}

TEST(CheckRequestTest, RootOutsideTheWorld_IsRefused) {
  TensorRequest request = Good(negotiation::OpKind::kBroadcast);
  request.root_rank = 2;
  EXPECT_EQ(Why(request), "broadcast of 'x': invalid root rank 2 in a world of 2");
}

TEST(CheckRequestTest, Splits_MustFit) {
  TensorRequest request = Good(negotiation::OpKind::kAllToAll);
  request.shape = {5};
  EXPECT_EQ(Why(request),
            "alltoall of 'x': the first dimension, 5, can't be split evenly among 2 ranks");
  request.splits = {1};
  EXPECT_EQ(Why(request), "alltoall of 'x': there are 1 splits for 2 ranks");
  request.splits = {3, 3};
  EXPECT_EQ(Why(request),
            "alltoall of 'x': the splits sum up to 6, but the first dimension is only 5");
  request.splits = {-1, 3};
  EXPECT_EQ(Why(request), "alltoall of 'x': a split is negative");
  request.splits = {0, 3};
  EXPECT_EQ(Why(request), "");
}

TEST(CheckRequestTest, EvenSplits_MustBeTellable) {
  constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
  TensorRequest request = Good(negotiation::OpKind::kAllToAll);
  request.shape = {kMostRows * kSize, 0};
  EXPECT_EQ(Why(request), "");
  request.shape = {(kMostRows + 1) * kSize, 0};
  EXPECT_EQ(Why(request),
            "alltoall of 'x': the first dimension, 4294967296, is too long for 2 ranks: a rank can "
            "be sent 2147483647 rows");
}

TEST(CheckRequestTest, Reductions_HaveTheirLimits) {
  TensorRequest request = Good(negotiation::OpKind::kReduceScatter);
  request.shape = {};
  EXPECT_EQ(Why(request), "reducescatter of 'x': scalars can't be scattered");
  request = Good(negotiation::OpKind::kReduceScatter);
  request.reduction = negotiation::Reduction::kAdasum;
  EXPECT_EQ(Why(request), "reducescatter of 'x': Adasum is for allreduce only");
  request = Good();
  request.reduction = negotiation::Reduction::kAdasum;
  request.type = collectives::DataType::kInt32;
  EXPECT_EQ(Why(request), "allreduce of 'x': Adasum needs floating-point tensors");
}

TEST(CheckRequestTest, Devices_AreForDataWithAPlaceForTheResult) {
  TensorRequest request = Good();
  request.on_device = true;
  request.device = 3;
  EXPECT_EQ(Why(request), "allreduce of 'x': a tensor on a device needs an output");
  request.output = data;
  EXPECT_EQ(Why(request), "");
  request.op = negotiation::OpKind::kBarrier;
  EXPECT_EQ(Why(request), "barrier of 'x': it has no tensor, so it can't name a device");
  request.op = negotiation::OpKind::kAllGather;
  EXPECT_EQ(Why(request), "");
  request.output = nullptr;
  EXPECT_EQ(Why(request), "") << "the engine allocates it";
  request.device = -2;
  EXPECT_EQ(Why(request), "allgather of 'x': no such device");
  request.device = kHostMemory;
  EXPECT_EQ(Why(request), "allgather of 'x': no such device");
}

TEST(SplitRequestsTest, BothParts_AreAddedInOrder) {
  TensorRequest all = Good(negotiation::OpKind::kAllToAll), bare;
  all.splits = {1, 3};
  all.output = data + 1;
  bare.name = "b";
  std::vector<negotiation::SignaturePtr> signatures;
  std::vector<TensorMemory> memory;
  SplitRequests({all}, signatures, memory);
  SplitRequests({bare}, signatures, memory);
  ASSERT_EQ(signatures.size(), 2u);
  EXPECT_EQ(*signatures[0], static_cast<const negotiation::TensorSignature&>(all));
  EXPECT_EQ(signatures[1]->name, "b");
  ASSERT_EQ(memory.size(), 2u);
  EXPECT_EQ(memory[0].input, data);
  EXPECT_EQ(memory[0].output, data + 1);
  EXPECT_EQ(memory[1].input, nullptr);
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
