// Operations over a slow network: each lasts several times its timeout, and must not end before its
// data does.
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/tcp/faulty_proxy_testing.h"
#include "collectives/tcp/tcp_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr absl::Duration kLong = absl::Seconds(6);  // what the data of a case takes
constexpr size_t kCount = 1 << 19, kBytes = kCount * sizeof(int64_t);

std::unique_ptr<Backend> Slow(size_t bytes, Fault fault = {}) {
  return std::make_unique<ProxiedMesh>(MakeTcpBackend(), fault, Pace::Of(bytes, kLong));
}

std::vector<int64_t> Numbers(int rank) {
  std::vector<int64_t> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 1000 * rank);
  return numbers;
}

absl::Status Reduce(Communicator& c, std::vector<int64_t>& data) {
  return c.AllReduce(data.data(), data.data(), data.size(), DataType::kInt64, ReduceOp::kSum,
                     {kTimeout});
}

TEST(TcpProgressTest, AllReduce_WhileDataMoves_LastsManyTimeouts) {
  conformance::RankGroup group(Slow(2 * kBytes));
  group.Connect(2);
  group.Run([](Communicator& c) {
    std::vector<int64_t> data = Numbers(c.rank());
    EXPECT_EQ(Reduce(c, data), absl::OkStatus());
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(data[i], static_cast<int64_t>(1000 + 2 * i));
  });
}

TEST(TcpProgressTest, Broadcast_OfOneMessage_LastsManyTimeouts) {
  constexpr size_t kOneMessage = 512 << 10;
  conformance::RankGroup group(Slow(kOneMessage));
  group.Connect(2);
  group.Run([](Communicator& c) {
    std::string data(kOneMessage, c.rank() == 0 ? 'x' : '?');
    EXPECT_EQ(c.Broadcast(&data[0], kOneMessage, 0, {kTimeout}), absl::OkStatus());
    EXPECT_TRUE(data == std::string(kOneMessage, 'x'));
    EXPECT_EQ(c.Barrier({kTimeout}), absl::OkStatus());
  });
}

// Rank 0 has given all its data to the kernel, which takes so much, and waits for rank 1.
TEST(TcpProgressTest, WhatTheKernelStillSends_IsMovement) {
  constexpr size_t kTaken = 2 << 20;
  conformance::RankGroup group(Slow(kTaken));
  group.Connect(2);
  group.Run([](Communicator& c) {
    std::string data(kTaken, c.rank() == 0 ? 'x' : '?');
    EXPECT_EQ(c.Broadcast(&data[0], kTaken, 0, {kTimeout}), absl::OkStatus());
    EXPECT_TRUE(data == std::string(kTaken, 'x'));
    EXPECT_EQ(c.Barrier({kTimeout}), absl::OkStatus());
  });
}

TEST(TcpProgressTest, DataStopsInTheMiddle_Fails) {
  conformance::RankGroup group(Slow(2 * kBytes, {Fault::kStall, kBytes}));
  group.Connect(2);
  group.Run([](Communicator& c) {
    std::vector<int64_t> data = Numbers(c.rank());
    const absl::Status status = Reduce(c, data);
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "no data in time")) << status;
  });
}

}  // namespace
}  // namespace hvd::collectives::tcp
