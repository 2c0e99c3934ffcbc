// Tests of staging through host memory, on a fake device that is as lazy as it may be.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/conformance/rank_group.h"
#include "collectives/float16.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"
#include "collectives/shm/shm_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

const CallOptions kPatient = {absl::Seconds(60)};
constexpr size_t kPart = (size_t{4} << 20) / sizeof(float);  // elements of a full part

// The host's communicator with a look at its operations.
class WatchedHost : public Communicator {
 public:
  // `before` is called before each operation; an error is returned in place of the operation.
  WatchedHost(Communicator& host, std::function<absl::Status(const CallOptions&)> before)
      : host_(host), before_(std::move(before)) {}
  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::string ToString() const override { return host_.ToString(); }
  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override {
    return Then(options, [&] { return host_.AllReduce(in, out, count, type, op, options); });
  }
  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override {
    return Then(options, [&] { return host_.AllGather(in, out, byte_counts, options); });
  }
  absl::Status Broadcast(void* buffer, size_t bytes, int root,
                         const CallOptions& options) override {
    return Then(options, [&] { return host_.Broadcast(buffer, bytes, root, options); });
  }
  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override {
    return Then(options,
                [&] { return host_.AllToAll(in, send_bytes, out, receive_bytes, options); });
  }
  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override {
    return Then(options, [&] { return host_.ReduceScatter(in, out, counts, type, op, options); });
  }
  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override {
    return Then(options, [&] { return host_.SendReceive(peer, in, out, bytes, options); });
  }
  absl::Status Barrier(const CallOptions& options) override { return host_.Barrier(options); }
  void Abort(absl::string_view reason) override { host_.Abort(reason); }

 private:
  absl::Status Then(const CallOptions& options, absl::FunctionRef<absl::Status()> operation) {
    const absl::Status status = before_(options);
    return status.ok() ? operation() : status;
  }

  Communicator& host_;
  const std::function<absl::Status(const CallOptions&)> before_;
};

// Small numbers, so that sums in any order are exact, that differ between elements and ranks.
std::vector<float> Numbers(size_t count, int rank) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i % 1021) + rank;
  return numbers;
}
std::vector<float> Sums(size_t count, int ranks, float factor = 1) {
  std::vector<float> sums(count);
  for (size_t i = 0; i < count; ++i) {
    sums[i] = (static_cast<float>(i % 1021 * ranks) + ranks * (ranks - 1) / 2) * factor;
  }
  return sums;
}

class StagedCommunicatorTest : public testing::Test {
 protected:
  void SetUp() override {
    faults_.streams_are_lazy = true;
    FakeGpu::Set(faults_);
    hosts_.Connect(2);
  }
  void TearDown() override {
    EXPECT_EQ(FakeGpu::pinned(), 0u);
    FakeGpu::Reset();
  }

  std::unique_ptr<DeviceCommunicator> Stage(Communicator& host) {
    auto staged = backend_->Stage(0, host);
    EXPECT_TRUE(staged.ok()) << staged.status();
    return *std::move(staged);
  }
  void Run(absl::FunctionRef<void(DeviceCommunicator&)> work) {
    hosts_.Run([&](Communicator& host) { work(*Stage(host)); });
  }
  // Lets rank 0 look at the operations of its host.
  void RunWatched(const std::function<absl::Status(const CallOptions&)>& before,
                  absl::FunctionRef<void(DeviceCommunicator&)> work) {
    hosts_.Run([&](Communicator& host) {
      WatchedHost watched(
          host, host.rank() == 0 ? before : [](const CallOptions&) { return absl::OkStatus(); });
      work(*Stage(watched));
    });
  }

  FakeGpu::Faults faults_;
  const std::unique_ptr<DeviceBackend> backend_ = MakeNcclBackend(FakeGpu::Libraries(), {});
  conformance::RankGroup hosts_{inproc::MakeInprocBackend()};
};

TEST_F(StagedCommunicatorTest, AllReduce_SizesAroundParts) {
  Run([&](DeviceCommunicator& c) {
    for (const size_t count : {size_t{1}, kPart - 1, kPart, kPart + 1, 3 * kPart + 7}) {
      const std::vector<float> in = Numbers(count, c.rank());
      std::vector<float> out(count), in_place = in;
      EXPECT_EQ(
          c.AllReduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum, kPatient),
          absl::OkStatus());
      EXPECT_TRUE(out == Sums(count, 2)) << count;
      EXPECT_TRUE(in == Numbers(count, c.rank())) << count;
      EXPECT_EQ(c.AllReduce(in_place.data(), in_place.data(), count, DataType::kFloat32,
                            ReduceOp::kSum, kPatient),
                absl::OkStatus());
      EXPECT_TRUE(in_place == out) << count;
    }
  });
}

TEST_F(StagedCommunicatorTest, AllReduceScaled_PiecesAcrossParts) {
  Run([&](DeviceCommunicator& c) {
    const size_t counts[] = {3, 0, 2 * kPart, 1, kPart / 2};
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
      EXPECT_TRUE((i % 2 == 0 ? in : out)[i] == Sums(counts[i], 2, 0.5)) << i;
    }
  });
}

TEST_F(StagedCommunicatorTest, AllGather_UnevenParts) {
  Run([&](DeviceCommunicator& c) {
    const std::vector<size_t> counts = {2 * kPart + 5, 17};
    std::vector<float> expected = Numbers(counts[0], 0), out(counts[0] + counts[1]);
    const std::vector<float> second = Numbers(counts[1], 1);
    expected.insert(expected.end(), second.begin(), second.end());
    const std::vector<float> in = Numbers(counts[c.rank()], c.rank());
    const std::vector<size_t> bytes = {counts[0] * sizeof(float), counts[1] * sizeof(float)};
    EXPECT_EQ(c.AllGather(in.data(), out.data(), bytes, kPatient), absl::OkStatus());
    EXPECT_TRUE(out == expected);
  });
}

TEST_F(StagedCommunicatorTest, Broadcast_InParts) {
  Run([&](DeviceCommunicator& c) {
    for (const int root : {0, 1}) {
      std::vector<float> data = Numbers(3 * kPart + 1, c.rank());
      EXPECT_EQ(c.Broadcast(data.data(), data.size() * sizeof(float), root, kPatient),
                absl::OkStatus());
      EXPECT_TRUE(data == Numbers(data.size(), root));
    }
  });
}

TEST_F(StagedCommunicatorTest, ReduceScatterScaled_UnevenParts) {
  Run([&](DeviceCommunicator& c) {
    const std::vector<size_t> counts = {2 * kPart + 5, 17};
    std::vector<float> in = Numbers(counts[0] + counts[1], c.rank());
    const std::vector<float> sums = Sums(in.size(), 2, 0.5);
    const size_t own = c.rank() == 0 ? 0 : counts[0];
    const std::vector<float> expected(sums.begin() + own, sums.begin() + own + counts[c.rank()]);
    std::vector<float> out(expected.size());
    EXPECT_EQ(c.ReduceScatterScaled(in.data(), out.data(), counts, DataType::kFloat32,
                                    ReduceOp::kSum, 0.5, kPatient),
              absl::OkStatus());
    EXPECT_TRUE(out == expected);
    EXPECT_EQ(c.ReduceScatterScaled(in.data(), in.data() + own, counts, DataType::kFloat32,
                                    ReduceOp::kSum, 0.5, kPatient),
              absl::OkStatus());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in.begin() + own)) << "in place";
  });
}

TEST_F(StagedCommunicatorTest, AllToAll_BeyondThePinnedMemory) {
  Run([&](DeviceCommunicator& c) {
    for (const size_t count : {size_t{5}, 2 * kPart}) {
      const std::vector<size_t> bytes(2, count * sizeof(float));
      std::vector<float> in = Numbers(2 * count, c.rank()), out(2 * count);
      EXPECT_EQ(c.AllToAll(in.data(), bytes, out.data(), bytes, kPatient), absl::OkStatus());
      for (const int peer : {0, 1}) {
        const std::vector<float> sent = Numbers(2 * count, peer);
        EXPECT_TRUE(std::equal(out.begin() + peer * count, out.begin() + (peer + 1) * count,
                               sent.begin() + c.rank() * count));
      }
    }
  });
}

// The host's own order of additions may differ between the parts, but not between ranks. In shared
// memory the hosts scale as they reduce.
TEST_F(StagedCommunicatorTest, FloatsOnSharedMemory_AreBitwiseEqualOnAllRanks) {
  conformance::RankGroup hosts(shm::MakeShmBackend());
  hosts.Connect(3);
  std::vector<std::vector<float>> results(3);
  hosts.Run([&](Communicator& host) {
    std::vector<float> data(2 * kPart + 3);
    for (size_t i = 0; i < data.size(); ++i) data[i] = 1.0f / (1 + i + 77 * host.rank());
    EXPECT_EQ(Stage(host)->AllReduceScaled({Piece{data.data(), data.data(), data.size()}},
                                           DataType::kFloat32, ReduceOp::kSum, 1.0 / 3, kPatient),
              absl::OkStatus());
    EXPECT_NEAR(data[0], (1.0 + 1.0 / 78 + 1.0 / 155) / 3, 1e-6);
    results[host.rank()] = std::move(data);
  });
  EXPECT_TRUE(results[0] == results[1] && results[1] == results[2]);
}

TEST_F(StagedCommunicatorTest, WhatFitsIsOneOperationBetweenTwoCopies) {
  int operations = 0;
  hosts_.Connect(1);
  RunWatched(
      [&](const CallOptions&) {
        ++operations;
        return absl::OkStatus();
      },
      [&](DeviceCommunicator& c) {
        std::vector<float> data(kPart);
        EXPECT_EQ(c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                              ReduceOp::kSum, kPatient),
                  absl::OkStatus());
      });
  EXPECT_EQ(operations, 1);
  EXPECT_EQ(FakeGpu::calls("cuMemcpyDtoHAsync"), 1);
  EXPECT_EQ(FakeGpu::calls("cuMemcpyHtoDAsync"), 1);
}

TEST_F(StagedCommunicatorTest, FailureInTheMiddle_LeavesNoCopyPending) {
  int operations = 0;
  hosts_.Connect(1);
  RunWatched(
      [&](const CallOptions&) {
        return ++operations == 3 ? absl::UnavailableError("gone") : absl::OkStatus();
      },
      [&](DeviceCommunicator& c) {
        std::vector<float> data(5 * kPart);
        EXPECT_EQ(c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                              ReduceOp::kSum, kPatient),
                  absl::UnavailableError("gone"));
        EXPECT_EQ(FakeGpu::pending(), 0u);
      });
  EXPECT_EQ(operations, 3);
}

TEST_F(StagedCommunicatorTest, FailureOfACopyOfAPiece_LeavesNoCopyPending) {
  hosts_.Connect(1);
  faults_.failing_copy = 2;
  Run([&](DeviceCommunicator& c) {
    FakeGpu::Set(faults_);
    std::vector<float> a = {1}, b = {2};
    EXPECT_EQ(c.AllReduceScaled({Piece{a.data(), a.data(), 1}, Piece{b.data(), b.data(), 1}},
                                DataType::kFloat32, ReduceOp::kSum, 1.0, kPatient)
                  .code(),
              absl::StatusCode::kInternal);
    EXPECT_EQ(FakeGpu::pending(), 0u);
  });
}

TEST_F(StagedCommunicatorTest, EachPartHasTheTimeout) {
  std::vector<absl::Duration> timeouts;
  RunWatched(
      [&](const CallOptions& options) {
        timeouts.push_back(options.timeout);
        return absl::OkStatus();
      },
      [&](DeviceCommunicator& c) {
        std::vector<float> data(3 * kPart);
        EXPECT_EQ(c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                              ReduceOp::kSum, kPatient),
                  absl::OkStatus());
      });
  EXPECT_EQ(timeouts, std::vector<absl::Duration>(3, kPatient.timeout));
}

TEST_F(StagedCommunicatorTest, PinningRefused_SaysWhy_AndWorks) {
  Run([&](DeviceCommunicator& c) { EXPECT_EQ(c.Warning(), ""); });
  faults_.pinning_fails = true;
  FakeGpu::Set(faults_);
  Run([&](DeviceCommunicator& c) {
    EXPECT_THAT(c.Warning(),
                testing::MatchesRegex("CUDA tensors go through pageable host memory, .*: "
                                      "page-locking .* CUDA error 2, .*rank [01].*"));
    std::vector<float> data = Numbers(2 * kPart, c.rank());
    EXPECT_EQ(c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32, ReduceOp::kSum,
                          kPatient),
              absl::OkStatus());
    EXPECT_TRUE(data == Sums(data.size(), 2));
  });
}

}  // namespace
}  // namespace hvd::collectives::nccl
