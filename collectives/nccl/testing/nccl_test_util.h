// The test fixture of ranks that are threads, each with a fake GPU, for NCCL tests that the
// conformance suite does not cover.
#ifndef COLLECTIVES_NCCL_TESTING_NCCL_TEST_UTIL_H_
#define COLLECTIVES_NCCL_TESTING_NCCL_TEST_UTIL_H_

#include <memory>
#include <string>
#include <vector>

#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {

inline const CallOptions kPatient = {absl::Seconds(60)};
inline const CallOptions kHasty = {absl::Milliseconds(20)};
// Limits for tests: long for steps that always complete, short for waits for absent peers.
inline NcclBounds Limits(absl::Duration close = absl::Seconds(60)) {
  NcclBounds limits;
  limits.finalize = absl::Milliseconds(20);
  limits.close = close;
  return limits;
}

inline std::string Text(const absl::Status& status) { return std::string(status.message()); }

class NcclTest : public testing::Test {
 protected:
  void SetUp() override { FakeGpu::Reset(); }
  void TearDown() override {
    FakeGpu::Reset();
    ranks_.clear();
    FakeGpu::AwaitNothingLeft();
  }

  // Connects rank r with device r; returns the statuses by rank.
  std::vector<absl::Status> TryConnect(int size, absl::Duration timeout = absl::Seconds(60),
                                       const Cancellation* cancellation = nullptr) {
    ranks_.clear();
    ranks_.resize(size);
    std::vector<absl::Status> statuses(size);
    conformance::KeyExchangeTable keys(size);
    const Epoch epoch(++epoch_);
    conformance::ForEachRank(size, [&](int rank) {
      auto connected = backend_->Connect({epoch, rank, size, "", "secret"}, rank + first_device_,
                                         *keys.ForRank(rank), {timeout, cancellation});
      statuses[rank] = connected.status();
      if (connected.ok()) ranks_[rank] = *std::move(connected);
    });
    return statuses;
  }
  void Connect(int size) {
    for (const absl::Status& status : TryConnect(size)) ASSERT_EQ(status, absl::OkStatus());
  }

  // Every rank contributes 1; returns the statuses by rank.
  std::vector<absl::Status> AllReduce(const CallOptions& options = kPatient) {
    std::vector<absl::Status> statuses(ranks_.size());
    conformance::ForEachRank(static_cast<int>(ranks_.size()), [&](int rank) {
      float one = 1;
      statuses[rank] =
          ranks_[rank]->AllReduce(&one, &one, 1, DataType::kFloat32, ReduceOp::kSum, options);
    });
    return statuses;
  }

  int first_device_ = 0;
  uint64_t epoch_ = 0;
  std::unique_ptr<DeviceBackend> backend_ = MakeNcclBackend(FakeGpu::Libraries(), {}, Limits());
  std::vector<std::unique_ptr<DeviceCommunicator>> ranks_;
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_TESTING_NCCL_TEST_UTIL_H_
