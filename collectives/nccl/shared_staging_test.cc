// Tests of staging through memory that the ranks share: threads, each with a mapping of its own and
// a fake device.
#include "collectives/nccl/shared_staging.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/conformance/rank_group.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"
#include "collectives/shm/shm_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

const CallOptions kPatient = {absl::Seconds(60)};
constexpr size_t kPart = (size_t{2} << 20) / sizeof(float);  // elements of a part, or a few more

// Small numbers, so that sums in any order are exact, that differ between elements and ranks.
float Number(size_t i, int rank) { return static_cast<float>(i % 1021) + 7 * rank; }
std::vector<float> Numbers(size_t count, int rank) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = Number(i, rank);
  return numbers;
}
std::vector<float> Sums(size_t count, int ranks, float factor = 1) {
  std::vector<float> sums(count);
  for (size_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < ranks; ++rank) sums[i] += Number(i, rank);
    sums[i] *= factor;
  }
  return sums;
}

// The host's communicator, which counts the operations that reduce, and whose n-th barrier fails.
class WatchedHost : public Communicator {
 public:
  WatchedHost(Communicator& host, int failing_barrier)
      : host_(host), failing_barrier_(failing_barrier) {}
  int reductions() const { return reductions_; }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::string ToString() const override { return host_.ToString(); }
  std::optional<SharedMemory> shared_memory() override { return host_.shared_memory(); }
  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override {
    if (count > 1) ++reductions_;
    return host_.AllReduce(in, out, count, type, op, options);
  }
  absl::Status Barrier(const CallOptions& options) override {
    if (++barriers_ == failing_barrier_) return absl::UnavailableError("gone");
    return host_.Barrier(options);
  }
  void Abort(absl::string_view reason) override { host_.Abort(reason); }
  absl::Status AllGather(const void*, void*, absl::Span<const size_t>,
                         const CallOptions&) override {
    return absl::UnimplementedError("");
  }
  absl::Status Broadcast(void*, size_t, int, const CallOptions&) override {
    return absl::UnimplementedError("");
  }
  absl::Status AllToAll(const void*, absl::Span<const size_t>, void*, absl::Span<const size_t>,
                        const CallOptions&) override {
    return absl::UnimplementedError("");
  }
  absl::Status ReduceScatter(const void*, void*, absl::Span<const size_t>, DataType, ReduceOp,
                             const CallOptions&) override {
    return absl::UnimplementedError("");
  }
  absl::Status SendReceive(int, const void*, void*, size_t, const CallOptions&) override {
    return absl::UnimplementedError("");
  }

 private:
  Communicator& host_;
  const int failing_barrier_;
  int barriers_ = 0;
  int reductions_ = 0;
};

class SharedStagingTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    faults_.streams_are_lazy = GetParam();
    FakeGpu::Set(faults_);
  }
  void TearDown() override {
    EXPECT_EQ(FakeGpu::pinned(), 0u);
    FakeGpu::Reset();
  }

  // Returns how many operations of rank 0's host have reduced.
  int Run(int ranks, absl::FunctionRef<void(DeviceCommunicator&)> work, int failing_barrier = 0) {
    conformance::RankGroup hosts(shm::MakeShmBackend());
    hosts.Connect(ranks);
    int reductions = 0;
    hosts.Run([&](Communicator& host) {
      WatchedHost watched(host, failing_barrier);
      work(**backend_->Stage(0, watched));
      if (host.rank() == 0) reductions = watched.reductions();
    });
    return reductions;
  }

  FakeGpu::Faults faults_;
  const std::unique_ptr<DeviceBackend> backend_ = MakeNcclBackend(FakeGpu::Libraries(), {});
};

TEST_P(SharedStagingTest, AllReduce_SizesAroundPartsAndShares) {
  for (const int ranks : {2, 3}) {
    const int reductions = Run(ranks, [&](DeviceCommunicator& c) {
      for (const size_t count : {kPart / 8, kPart - 500, kPart, kPart + 1, 6 * kPart + 191}) {
        const std::vector<float> in = Numbers(count, c.rank());
        std::vector<float> out(count), in_place = in;
        EXPECT_EQ(
            c.AllReduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum, kPatient),
            absl::OkStatus());
        EXPECT_TRUE(out == Sums(count, ranks)) << count;
        EXPECT_TRUE(in == Numbers(count, c.rank())) << count;
        EXPECT_EQ(c.AllReduce(in_place.data(), in_place.data(), count, DataType::kFloat32,
                              ReduceOp::kSum, kPatient),
                  absl::OkStatus());
        EXPECT_TRUE(in_place == out) << count;
      }
    });
    EXPECT_EQ(reductions, 0) << "the host has reduced other memory";
  }
}

TEST_P(SharedStagingTest, AllReduceScaled_PiecesAcrossParts) {
  Run(3, [&](DeviceCommunicator& c) {
    const size_t counts[] = {3, 0, 2 * kPart, 1, kPart / 2, 65};
    std::vector<std::vector<float>> in, out;
    std::vector<Piece> pieces;
    for (const size_t count : counts) {
      in.push_back(Numbers(count, c.rank()));
      out.emplace_back(count);
    }
    for (size_t i = 0; i < in.size(); ++i) {
      float* const to = i % 2 == 0 ? in[i].data() : out[i].data();
      pieces.push_back({in[i].data(), to, counts[i]});
    }
    EXPECT_EQ(c.AllReduceScaled(pieces, DataType::kFloat32, ReduceOp::kSum, 0.5, kPatient),
              absl::OkStatus());
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_TRUE((i % 2 == 0 ? in : out)[i] == Sums(counts[i], 3, 0.5)) << i;
    }
  });
}

TEST_P(SharedStagingTest, Bytes_OfTheLeastUnit) {
  Run(2, [&](DeviceCommunicator& c) {
    std::vector<uint8_t> data((size_t{5} << 20) + 3, static_cast<uint8_t>(3 + c.rank()));
    EXPECT_EQ(c.AllReduce(data.data(), data.data(), data.size(), DataType::kUint8, ReduceOp::kMax,
                          kPatient),
              absl::OkStatus());
    EXPECT_TRUE(data == std::vector<uint8_t>(data.size(), 4));
  });
}

TEST_P(SharedStagingTest, MemoryCanNotBeLocked_ByWayOfTheRanksOwn) {
  faults_.registering_fails = true;
  FakeGpu::Set(faults_);
  const int reductions = Run(2, [&](DeviceCommunicator& c) {
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<float> data = Numbers(kPart, c.rank());
      EXPECT_EQ(c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                            ReduceOp::kSum, kPatient),
                absl::OkStatus());
      EXPECT_TRUE(data == Sums(data.size(), 2));
    }
  });
  EXPECT_EQ(reductions, 2);
}

TEST_P(SharedStagingTest, FailureInTheMiddle_LeavesNoCopyPending) {
  Run(
      2,
      [&](DeviceCommunicator& c) {
        std::vector<float> data(6 * kPart);
        EXPECT_EQ(c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                              ReduceOp::kSum, kPatient),
                  absl::UnavailableError("gone"));
        EXPECT_EQ(c.Barrier(kPatient), absl::OkStatus());  // the other rank's call has returned
        EXPECT_EQ(FakeGpu::pending(), 0u);
      },
      /*failing_barrier=*/4);
}

INSTANTIATE_TEST_SUITE_P(Streams, SharedStagingTest, testing::Bool(),
                         [](const auto& lazy) { return lazy.param ? "Lazy" : "Eager"; });

}  // namespace
}  // namespace hvd::collectives::nccl
