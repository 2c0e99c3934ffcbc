// Tests of the device executor: ranks are threads, device memory is host memory, and there is no
// negotiation.
#include "worker_runtime/engine/device_executor.h"

#include <string>
#include <thread>  // NOLINT: for Abort from elsewhere
#include <utility>

#include "base/net/tls_session.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::worker_runtime::engine {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Parts = std::vector<std::optional<OperationTensor>>;

TensorRequest Request(negotiation::Reduction reduction = negotiation::Reduction::kSum,
                      negotiation::OpKind op = negotiation::OpKind::kAllReduce) {
  TensorRequest request;
  request.name = "x";
  request.op = op;
  request.reduction = reduction;
  request.on_device = true;
  return request;
}

// A tensor of `rank`'s device, as a part and as a plan.
struct Tensor {
  Tensor(int rank, std::vector<float> values, TensorRequest request)
      : Tensor(rank, values, request, values.size()) {}
  // 0: without an output.
  Tensor(int rank, std::vector<float> values, TensorRequest request, size_t out_size)
      : in(std::move(values)), out(out_size, -1), operation(std::make_shared<Operation>()) {
    request.shape = {static_cast<int64_t>(in.size())};
    request.device = rank;
    request.input = in.data();
    request.output = out.empty() ? nullptr : out.data();
    planned.signature = std::make_shared<const negotiation::TensorSignature>(request);
    operation->signatures = {planned.signature};
    operation->requests = {request};
    operation->results.resize(1);
    operation->unfinished = 1;
  }
  const TensorResult& result() const { return operation->results[0]; }
  std::vector<float> Result() const {
    const auto* data = static_cast<const float*>(result().data);
    return std::vector<float>(data, data + result().shape.at(0));
  }
  bool IsInOutput() const { return result().data == out.data(); }

  std::vector<float> in, out;
  OperationPtr operation;
  negotiation::PlannedTensor planned;
};

class DeviceExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    collectives::nccl::FakeGpu::Reset();
    hosts_.Connect(2);
    for (int rank = 0; rank < 2; ++rank) Make(rank, Connector(rank));
  }
  void TearDown() override {
    collectives::nccl::FakeGpu::Reset();
    for (auto& executor : executors_) executor.reset();
    collectives::nccl::FakeGpu::AwaitNothingLeft();
  }

  DeviceConnector Connector(int rank) {
    return [this, rank](int device, const WaitBounds& bounds) {
      return collectives::ConnectDevices(*backend_, {Epoch(1), rank, 2, "", "secret", tls_}, device,
                                         hosts_.at(rank), bounds, &why_staged_[rank]);
    };
  }
  void Make(int rank, DeviceConnector connect) {
    executors_[rank] =
        std::make_unique<DeviceExecutor>(std::move(connect), rank, absl::Seconds(60), recorder_, 0);
  }

  // Runs one batch of tensors on both ranks; rank 1 is absent from those that `absent` names.
  std::vector<absl::Status> Run(std::vector<Tensor>& mine, std::vector<Tensor>& theirs,
                                const std::vector<bool>& absent = {}) {
    std::vector<absl::Status> statuses(2);
    collectives::conformance::ForEachRank(2, [&](int rank) {
      negotiation::Batch batch;
      Parts parts;
      std::vector<Tensor>& tensors = rank == 0 ? mine : theirs;
      for (size_t i = 0; i < tensors.size(); ++i) {
        batch.push_back(tensors[i].planned);
        const bool is_absent = rank == 1 && !absent.empty() && absent[i];
        parts.push_back(is_absent ? std::nullopt
                                  : std::make_optional(OperationTensor{tensors[i].operation, 0}));
      }
      statuses[rank] = executors_[rank]->Run(batch, parts);
    });
    return statuses;
  }
  std::vector<absl::Status> RunOne(const TensorRequest& request) {
    std::vector<Tensor> mine, theirs;
    mine.emplace_back(0, std::vector<float>{1}, request);
    theirs.emplace_back(1, std::vector<float>{2}, request);
    return Run(mine, theirs);
  }

  timeline::Recorder recorder_;
  const std::unique_ptr<collectives::DeviceBackend> backend_ =
      collectives::nccl::MakeNcclBackend(collectives::nccl::FakeGpu::Libraries(), {});
  collectives::conformance::RankGroup hosts_{collectives::inproc::MakeInprocBackend()};
  std::shared_ptr<const net::TlsContext> tls_;
  std::string why_staged_[2];
  std::unique_ptr<DeviceExecutor> executors_[2];
};

TEST_F(DeviceExecutorTest, AllReduce_FusedAverage_IsOneScaledGroup) {
  TensorRequest request = Request(negotiation::Reduction::kAverage);
  request.prescale = 3;
  request.postscale = 2;
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(0, std::vector<float>{1, 2}, request);
  mine.emplace_back(0, std::vector<float>{3}, request);
  theirs.emplace_back(1, std::vector<float>{3, 4}, request);
  theirs.emplace_back(1, std::vector<float>{5}, request);
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  for (const auto* tensors : {&mine, &theirs}) {
    EXPECT_THAT((*tensors)[0].out, ElementsAre(12, 18));
    EXPECT_THAT((*tensors)[1].out, ElementsAre(24));
    EXPECT_THAT((*tensors)[0].operation->results[0].shape, ElementsAre(2));
    EXPECT_EQ((*tensors)[0].operation->results[0].data, (*tensors)[0].out.data());
  }
  EXPECT_THAT(mine[0].in, ElementsAre(1, 2)) << "the input stays";
  EXPECT_EQ(collectives::nccl::FakeGpu::calls("ncclRedOpCreatePreMulSum"), 2);
}

TEST_F(DeviceExecutorTest, UnderTls_GoesThroughTheHostsWithoutNccl) {
  const rendezvous::security::PeerCredentials issued =
      *(*rendezvous::security::JobAuthority::Create("job"))->IssueForHost("any host");
  tls_ = *net::TlsContext::Create({issued.ca_certificate, issued.certificate, issued.private_key});
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(0, std::vector<float>{1}, Request());
  theirs.emplace_back(1, std::vector<float>{2}, Request());
  EXPECT_THAT(Run(mine, theirs), Each(absl::OkStatus()));
  EXPECT_THAT(mine[0].out, ElementsAre(3));
  EXPECT_THAT(why_staged_, Each("--encrypt-data is set, and NCCL does not encrypt"));
  EXPECT_EQ(collectives::nccl::FakeGpu::calls("ncclAllReduce"), 0);
}

TEST_F(DeviceExecutorTest, AllReduce_RankThatHasJoined_ChangesNothing) {
  const std::pair<negotiation::Reduction, float> cases[] = {{negotiation::Reduction::kSum, 3},
                                                            {negotiation::Reduction::kMin, 3},
                                                            {negotiation::Reduction::kMax, -5},
                                                            {negotiation::Reduction::kProduct, 3}};
  for (const auto& [reduction, value] : cases) {
    std::vector<Tensor> mine, theirs;
    for (const bool with_value : {true, false}) {
      mine.emplace_back(0, std::vector<float>{with_value ? value : 0, 1}, Request(reduction));
      theirs.emplace_back(1, std::vector<float>{0, 0}, Request(reduction));
    }
    for (const absl::Status& status : Run(mine, theirs, {true, true})) {
      EXPECT_EQ(status, absl::OkStatus());
    }
    EXPECT_THAT(mine[0].out, ElementsAre(value, 1)) << negotiation::NameOf(reduction);
    EXPECT_THAT(theirs[0].out, ElementsAre(-1, -1));
  }
}

TEST_F(DeviceExecutorTest, Broadcast_FromTheRootsInput) {
  TensorRequest request = Request(negotiation::Reduction::kSum, negotiation::OpKind::kBroadcast);
  request.root_rank = 1;
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(0, std::vector<float>{1, 2}, request);
  theirs.emplace_back(1, std::vector<float>{3, 4}, request);
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(mine[0].out, ElementsAre(3, 4));
  EXPECT_THAT(theirs[0].out, ElementsAre(3, 4));
}

TEST_F(DeviceExecutorTest, AllGather_AsManyRowsFromAll_GoesIntoTheOutput) {
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(0, std::vector<float>{1, 2},
                    Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllGather), 4);
  theirs.emplace_back(1, std::vector<float>{3, 4},
                      Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllGather), 4);
  mine[0].planned.first_dims = theirs[0].planned.first_dims = {2, 2};
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  for (const Tensor* tensor : {&mine[0], &theirs[0]}) {
    EXPECT_TRUE(tensor->IsInOutput());
    EXPECT_THAT(tensor->Result(), ElementsAre(1, 2, 3, 4));
  }
  EXPECT_TRUE(mine[0].operation->memory.empty());
}

TEST_F(DeviceExecutorTest, AllGather_OtherwiseIntoNewMemory) {
  std::vector<Tensor> mine, theirs;
  // With and without an output buffer, which has room for two ranks.
  mine.emplace_back(0, std::vector<float>{1},
                    Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllGather), 4);
  theirs.emplace_back(1, std::vector<float>{3, 4, 5},
                      Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllGather), 0);
  mine[0].planned.first_dims = theirs[0].planned.first_dims = {1, 3};
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(mine[0].out, Each(-1));
  // The result stays valid after the end of the world.
  for (auto& executor : executors_) executor.reset();
  for (const Tensor* tensor : {&mine[0], &theirs[0]}) {
    EXPECT_FALSE(tensor->IsInOutput());
    EXPECT_THAT(tensor->Result(), ElementsAre(1, 3, 4, 5));
  }
}

// As a program of XLA does that was compiled for a smaller world.
TEST_F(DeviceExecutorTest, OutputOfWrongSize_IsNotUsed) {
  for (const auto op : {negotiation::OpKind::kAllGather, negotiation::OpKind::kReduceScatter}) {
    std::vector<Tensor> mine, theirs;
    mine.emplace_back(0, std::vector<float>{1, 2}, Request(negotiation::Reduction::kSum, op), 4);
    theirs.emplace_back(1, std::vector<float>{3, 4}, Request(negotiation::Reduction::kSum, op), 4);
    mine[0].planned.first_dims = theirs[0].planned.first_dims = {2, 2};
    const bool gathers = op == negotiation::OpKind::kAllGather;
    mine[0].operation->requests[0].output_bytes = (gathers ? 4 : 1) * sizeof(float);
    theirs[0].operation->requests[0].output_bytes = 2 * sizeof(float);
    for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
    EXPECT_TRUE(mine[0].IsInOutput());
    EXPECT_FALSE(theirs[0].IsInOutput());
    EXPECT_THAT(theirs[0].out, Each(-1));
  }
}

TEST_F(DeviceExecutorTest, AllGather_OfNothing) {
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(0, std::vector<float>{},
                    Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllGather), 0);
  theirs.emplace_back(1, std::vector<float>{},
                      Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllGather), 0);
  mine[0].planned.first_dims = theirs[0].planned.first_dims = {0, 0};
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(mine[0].result().shape, ElementsAre(0));
  EXPECT_EQ(mine[0].result().data, nullptr);
}

TEST_F(DeviceExecutorTest, AllGather_DeviceIsFull) {
  collectives::nccl::FakeGpu::Faults faults;
  faults.memory_is_full = true;
  collectives::nccl::FakeGpu::Set(faults);
  std::vector<Tensor> mine, theirs;
  const TensorRequest request =
      Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllGather);
  mine.emplace_back(0, std::vector<float>{1}, request, 0);
  theirs.emplace_back(1, std::vector<float>{1, 2, 3}, request, 0);
  mine[0].planned.first_dims = theirs[0].planned.first_dims = {1, 3};
  for (const absl::Status& status : Run(mine, theirs)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

TEST_F(DeviceExecutorTest, AllToAll_IntoTheOutputIfAsMuchComesAsGoes) {
  const struct {
    std::vector<int32_t> splits;  // of rank 0, then of rank 1
    std::vector<float> mine, theirs;
    bool in_output;
  } cases[] = {
      {{1, 1, 1, 1}, {1, 3}, {2, 4}, true},
      {{0, 2, 2, 0}, {3, 4}, {1, 2}, true},
      {{2, 0, 1, 1}, {1, 2, 3}, {4}, false},
      {{0, 2, 0, 2}, {}, {1, 2, 3, 4}, false},
  };
  for (const auto& c : cases) {
    std::vector<Tensor> mine, theirs;
    TensorRequest request = Request(negotiation::Reduction::kSum, negotiation::OpKind::kAllToAll);
    request.splits = {c.splits[0], c.splits[1]};
    mine.emplace_back(0, std::vector<float>{1, 2}, request, 4);
    request.splits = {c.splits[2], c.splits[3]};
    theirs.emplace_back(1, std::vector<float>{3, 4}, request, 4);
    mine[0].planned.received_splits = {c.splits[0], c.splits[2]};
    theirs[0].planned.received_splits = {c.splits[1], c.splits[3]};
    for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
    EXPECT_EQ(mine[0].Result(), c.mine);
    EXPECT_EQ(theirs[0].Result(), c.theirs);
    EXPECT_THAT(mine[0].result().received_splits, ElementsAre(c.splits[0], c.splits[2]));
    EXPECT_EQ(mine[0].IsInOutput(), c.in_output);
  }
}

TEST_F(DeviceExecutorTest, ReduceScatter_ScaledAverage) {
  TensorRequest request =
      Request(negotiation::Reduction::kAverage, negotiation::OpKind::kReduceScatter);
  request.prescale = 3;
  request.postscale = 0.5;
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(0, std::vector<float>{1, 2, 3}, request, 2);
  theirs.emplace_back(1, std::vector<float>{3, 4, 5}, request, 1);
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(mine[0].out, ElementsAre(3, 4.5));
  EXPECT_THAT(theirs[0].out, ElementsAre(6));
  EXPECT_THAT(mine[0].result().shape, ElementsAre(2));
  EXPECT_THAT(theirs[0].result().shape, ElementsAre(1));
  EXPECT_THAT(mine[0].in, ElementsAre(1, 2, 3)) << "the input stays";
}

TEST_F(DeviceExecutorTest, ReduceScatter_FewerRowsThanRanks) {
  std::vector<Tensor> mine, theirs;
  const TensorRequest request =
      Request(negotiation::Reduction::kMax, negotiation::OpKind::kReduceScatter);
  mine.emplace_back(0, std::vector<float>{1}, request, 1);
  theirs.emplace_back(1, std::vector<float>{3}, request, 0);
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(mine[0].out, ElementsAre(3));
  EXPECT_THAT(theirs[0].result().shape, ElementsAre(0));
}

TEST_F(DeviceExecutorTest, ReadyEvent_IsWaitedFor) {
  collectives::nccl::CudaEvent* const produced = collectives::nccl::FakeGpu::NewEvent();
  TensorRequest request = Request();
  request.ready_event = produced;
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(0, std::vector<float>{0}, request);
  theirs.emplace_back(1, std::vector<float>{1}, Request());
  std::thread producer([&] {
    mine[0].in[0] = 5;
    collectives::nccl::FakeGpu::Happen(produced);
  });
  for (const absl::Status& status : Run(mine, theirs)) EXPECT_EQ(status, absl::OkStatus());
  producer.join();
  EXPECT_THAT(theirs[0].out, ElementsAre(6));
}

TEST_F(DeviceExecutorTest, NotForDevices_BreaksNothing) {
  for (const absl::Status& status : RunOne(Request(negotiation::Reduction::kAdasum))) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  }
  for (const absl::Status& status : RunOne(Request())) EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(DeviceExecutorTest, NoDevices_EachCallFails) {
  for (int rank = 0; rank < 2; ++rank) Make(rank, nullptr);
  for (int round = 0; round < 2; ++round) {
    for (const absl::Status& status : RunOne(Request())) {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    }
  }
}

TEST_F(DeviceExecutorTest, TwoDevices_IsAnError) {
  for (const absl::Status& status : RunOne(Request())) EXPECT_EQ(status, absl::OkStatus());
  Tensor other(7, {1}, Request());
  const Parts parts = {OperationTensor{other.operation, 0}};
  const absl::Status status = executors_[0]->Run({other.planned}, parts);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA device 7 after one on 0"));
}

TEST_F(DeviceExecutorTest, Abort_BeforeTheFirstBatch) {
  for (auto& executor : executors_) executor->Abort("enough");
  for (const absl::Status& status : RunOne(Request())) {
    EXPECT_EQ(status, absl::AbortedError("enough"));
  }
}

TEST_F(DeviceExecutorTest, Abort_WhileItRuns) {
  collectives::nccl::FakeGpu::Faults faults;
  faults.operations_never_end = true;
  collectives::nccl::FakeGpu::Set(faults);
  std::thread aborter([&] {
    for (auto& executor : executors_) executor->Abort("enough");
  });
  for (const absl::Status& status : RunOne(Request())) {
    EXPECT_TRUE(absl::IsAborted(status) || absl::IsUnavailable(status)) << status;
  }
  aborter.join();
}

TEST(IsForDevices, WhatNcclCanDo) {
  const auto can = [](negotiation::Reduction reduction, collectives::DataType type, double prescale,
                      negotiation::OpKind op = negotiation::OpKind::kAllReduce) {
    TensorRequest request = Request(reduction, op);
    request.type = type;
    request.prescale = prescale;
    return IsForDevices(request);
  };
  EXPECT_TRUE(can(negotiation::Reduction::kSum, collectives::DataType::kInt16, 1));
  EXPECT_TRUE(can(negotiation::Reduction::kAverage, collectives::DataType::kBfloat16, 0.5));
  EXPECT_TRUE(can(negotiation::Reduction::kSum, collectives::DataType::kFloat64, 0.5));
  EXPECT_TRUE(can(negotiation::Reduction::kMax, collectives::DataType::kFloat32, 1));
  EXPECT_TRUE(can(negotiation::Reduction::kAdasum, collectives::DataType::kInt8, 2,
                  negotiation::OpKind::kBroadcast));
  EXPECT_FALSE(can(negotiation::Reduction::kAverage, collectives::DataType::kInt32, 1));
  EXPECT_FALSE(can(negotiation::Reduction::kSum, collectives::DataType::kInt32, 0.5));
  EXPECT_FALSE(can(negotiation::Reduction::kMax, collectives::DataType::kFloat32, 0.5));
  EXPECT_FALSE(can(negotiation::Reduction::kAdasum, collectives::DataType::kFloat32, 1));
  EXPECT_TRUE(can(negotiation::Reduction::kSum, collectives::DataType::kInt16, 1,
                  negotiation::OpKind::kAllGather));
  EXPECT_TRUE(can(negotiation::Reduction::kSum, collectives::DataType::kBool, 1,
                  negotiation::OpKind::kAllToAll));
  EXPECT_TRUE(can(negotiation::Reduction::kAverage, collectives::DataType::kFloat16, 1,
                  negotiation::OpKind::kReduceScatter));
  EXPECT_FALSE(can(negotiation::Reduction::kAverage, collectives::DataType::kInt64, 1,
                   negotiation::OpKind::kReduceScatter));
  EXPECT_FALSE(can(negotiation::Reduction::kSum, collectives::DataType::kFloat32, 1,
                   negotiation::OpKind::kBarrier));
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
