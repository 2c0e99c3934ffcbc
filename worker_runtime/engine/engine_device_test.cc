// Tests of engines whose tensors are on GPUs: from submission to result, and all kinds of ends.
#include <atomic>
#include <memory>
#include <string>
#include <thread>  // NOLINT: for Abort from elsewhere
#include <utility>
#include <vector>

#include "collectives/nccl/nccl_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/engine/engine_test_util.h"

namespace hvd::worker_runtime::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Floats = std::vector<float>;

constexpr int kRanks = 3;

collectives::nccl::FakeGpu::Faults With(bool collectives::nccl::FakeGpu::Faults::*fault) {
  collectives::nccl::FakeGpu::Faults faults;
  faults.*fault = true;
  return faults;
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

TensorRequest Of(negotiation::OpKind op, const std::string& name, int rank, const Floats& in) {
  TensorRequest request;
  request.name = name;
  request.op = op;
  request.shape = {static_cast<int64_t>(in.size())};
  request.input = in.data();
  request.device = rank;
  request.on_device = true;
  return request;
}

TensorRequest OnHost(TensorRequest request) {
  request.on_device = false;
  request.device = kHostMemory;
  return request;
}

Floats Elements(const TensorResult& result) {
  const auto* data = static_cast<const float*>(result.data);
  return Floats(data, data + result.shape.at(0));
}

// The contribution of rank r: r + 1 elements of that value.
Floats Rows(int rank) { return Floats(rank + 1, rank + 1.0f); }

class EngineDeviceTest : public testing::Test {
 protected:
  void SetUp() override { collectives::nccl::FakeGpu::Reset(); }
  void TearDown() override {
    collectives::nccl::FakeGpu::Reset();
    world_.reset();
    collectives::nccl::FakeGpu::AwaitNothingLeft();
  }
  void Start(int size = kRanks) {
    world_ = std::make_unique<TestWorld>(size, EngineOptions{}, -1, backend_.get());
  }
  // One allgather with as many rows as Rows gives; the statuses, by rank.
  std::vector<absl::Status> GatherRows(const std::string& name = "gathered") {
    std::vector<absl::Status> statuses(world_->size());
    world_->OnEach([&](int rank, Engine& engine) {
      const Floats in = Rows(rank);
      statuses[rank] = RunAndCheck(engine, {Of(negotiation::OpKind::kAllGather, name, rank, in)},
                                   [&](const std::vector<TensorResult>& results) {
                                     Floats all;
                                     for (int r = 0; r < world_->size(); ++r) {
                                       const Floats rows = Rows(r);
                                       all.insert(all.end(), rows.begin(), rows.end());
                                     }
                                     EXPECT_EQ(Elements(results[0]), all);
                                   });
    });
    return statuses;
  }
  void ExpectGathers(const std::string& name) {
    for (const absl::Status& status : GatherRows(name)) EXPECT_EQ(status, absl::OkStatus());
  }

  const std::unique_ptr<collectives::DeviceBackend> backend_ =
      collectives::nccl::MakeNcclBackend(collectives::nccl::FakeGpu::Libraries(), {});
  std::unique_ptr<TestWorld> world_;
};

TEST_F(EngineDeviceTest, AllGather_OfDifferingRows) {
  Start();
  for (int i = 0; i < 3; ++i) ExpectGathers(absl::StrCat("gathered ", i));
}

TEST_F(EngineDeviceTest, AllToAll_OfDifferingSplits) {
  Start();
  world_->OnEach([&](int rank, Engine& engine) {
    // Rank r sends r rows to rank 0, r + 1 to rank 1, r + 2 to rank 2.
    const Floats in(3 * rank + 3, rank);
    TensorRequest request = Of(negotiation::OpKind::kAllToAll, "exchanged", rank, in);
    request.splits = {rank, rank + 1, rank + 2};
    EXPECT_EQ(RunAndCheck(engine, {request},
                          [&](const std::vector<TensorResult>& results) {
                            Floats expected;
                            for (int r = 0; r < kRanks; ++r)
                              expected.insert(expected.end(), r + rank, r);
                            EXPECT_EQ(Elements(results[0]), expected);
                            EXPECT_THAT(results[0].received_splits,
                                        testing::ElementsAre(rank, rank + 1, rank + 2));
                          }),
              absl::OkStatus());
  });
}

TEST_F(EngineDeviceTest, ReduceScatter_Average) {
  Start();
  world_->OnEach([&](int rank, Engine& engine) {
    const Floats in = {1.0f * rank, 2.0f * rank, 3.0f * rank, 4.0f * rank};
    TensorRequest request = Of(negotiation::OpKind::kReduceScatter, "scattered", rank, in);
    request.reduction = negotiation::Reduction::kAverage;
    EXPECT_EQ(RunAndCheck(engine, {request},
                          [&](const std::vector<TensorResult>& results) {
                            const Floats expected[] = {{1, 2}, {3}, {4}};
                            ASSERT_EQ(Elements(results[0]).size(), expected[rank].size());
                            for (size_t i = 0; i < expected[rank].size(); ++i) {
                              EXPECT_FLOAT_EQ(Elements(results[0])[i], expected[rank][i]);
                            }
                          }),
              absl::OkStatus());
  });
}

TEST_F(EngineDeviceTest, Group_OfSeveralOperationsInFlight) {
  Start();
  world_->OnEach([&](int rank, Engine& engine) {
    const Floats in = Rows(rank);
    Floats sum = {1, 2};
    TensorRequest reduced = Of(negotiation::OpKind::kAllReduce, "reduced", rank, sum);
    reduced.output = sum.data();
    auto gathered = engine.Submit({Of(negotiation::OpKind::kAllGather, "a", rank, in),
                                   Of(negotiation::OpKind::kAllGather, "b", rank, in)});
    auto summed = engine.Submit({reduced});
    ASSERT_TRUE(gathered.ok() && summed.ok());
    EXPECT_EQ(engine.Wait(*summed), absl::OkStatus());
    EXPECT_EQ(engine.Wait(*gathered), absl::OkStatus());
    EXPECT_EQ(sum, Floats({kRanks, 2 * kRanks}));
    EXPECT_EQ(Elements((*gathered)->results[0]), Elements((*gathered)->results[1]));
    EXPECT_NE((*gathered)->results[0].data, (*gathered)->results[1].data);
  });
}

// A handle may be kept for longer than its world.
TEST_F(EngineDeviceTest, Result_OutlivesTheEngine) {
  Start(2);
  Engine::Handle kept[2];
  world_->OnEach([&](int rank, Engine& engine) {
    const Floats in = Rows(rank);
    auto handle = engine.Submit({Of(negotiation::OpKind::kAllGather, "gathered", rank, in)});
    ASSERT_TRUE(handle.ok()) << handle.status();
    EXPECT_EQ(engine.Wait(*handle), absl::OkStatus());
    kept[rank] = *handle;
  });
  world_.reset();
  collectives::nccl::FakeGpu::AwaitNothingLeft();
  for (const Engine::Handle& handle : kept) {
    EXPECT_EQ(Elements(handle->results[0]), Floats({1, 2, 2}));
  }
}

TEST_F(EngineDeviceTest, HostOnSomeRanks_AllGetTheirNamesAndContinue) {
  Start();
  const negotiation::OpKind ops[] = {
      negotiation::OpKind::kAllGather, negotiation::OpKind::kAllToAll,
      negotiation::OpKind::kReduceScatter, negotiation::OpKind::kBroadcast,
      negotiation::OpKind::kAllReduce};
  for (const negotiation::OpKind op : ops) {
    world_->OnEach([&](int rank, Engine& engine) {
      Floats in(kRanks, 1);
      TensorRequest request = Of(op, absl::StrCat("a ", negotiation::NameOf(op)), rank, in);
      request.output = in.data();
      if (rank == 1) request = OnHost(request);
      const absl::Status status = RunOn(engine, {request});
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(Text(status),
                  AllOf(StartsWith(absl::StrCat("Mismatched ", negotiation::NameOf(op))),
                        HasSubstr("ranks 0 and 2 sent float32 [3] on a GPU"),
                        HasSubstr("rank 1 sent float32 [3] on the host")));
    });
  }
  ExpectGathers("after that");
}

TEST_F(EngineDeviceTest, Abort_InTheMiddle_EndsAllRanks) {
  const negotiation::OpKind ops[] = {negotiation::OpKind::kAllGather,
                                     negotiation::OpKind::kAllToAll,
                                     negotiation::OpKind::kReduceScatter};
  for (const negotiation::OpKind op : ops) {
    Start();
    ExpectGathers("before");
    collectives::nccl::FakeGpu::Set(
        With(&collectives::nccl::FakeGpu::Faults::operations_never_end));
    std::atomic<int> submitted{0};
    world_->OnEach([&](int rank, Engine& engine) {
      const Floats in(kRanks, 1);
      auto handle = engine.Submit({Of(op, "hangs", rank, in)});
      ASSERT_TRUE(handle.ok()) << handle.status();
      if (++submitted == kRanks) engine.Abort(absl::UnavailableError("rank 7 has died"));
      const absl::Status status = engine.Wait(*handle);
      EXPECT_FALSE(status.ok());
      EXPECT_NE(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_EQ(engine.Submit({Of(op, "later", rank, in)}).status(), status) << "and stays";
    });
    collectives::nccl::FakeGpu::Reset();
    world_.reset();
  }
}

TEST_F(EngineDeviceTest, FullDevice_EndsTheWorldOnAllRanks) {
  Start();
  collectives::nccl::FakeGpu::Set(With(&collectives::nccl::FakeGpu::Faults::memory_is_full));
  std::vector<absl::Status> statuses(kRanks);
  world_->OnEach([&](int rank, Engine& engine) {
    const Floats in(size_t{1} << 20, rank);
    statuses[rank] = RunOn(engine, {Of(negotiation::OpKind::kAllGather, "too large", rank, in)});
  });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(Text(status), HasSubstr("bytes of memory for a result on CUDA device"));
  }
}

TEST_F(EngineDeviceTest, LibraryFails_EndsTheWorldOnAllRanks) {
  Start();
  ExpectGathers("before");
  collectives::nccl::FakeGpu::Faults faults;
  faults.operations_never_end = true;
  faults.async_error = collectives::nccl::NcclResult::kRemoteError;
  collectives::nccl::FakeGpu::Set(faults);
  for (const absl::Status& status : GatherRows("fails")) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(Text(status), HasSubstr("a fake error"));
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
