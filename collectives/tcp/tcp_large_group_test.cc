// Large groups, in which each rank is linked with some ranks only.
#include <sys/socket.h>

#include <numeric>
#include <random>

#include "absl/synchronization/notification.h"
#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/tcp/tcp_backend.h"

namespace hvd::collectives::tcp {
namespace {

const CallOptions kPatient = {absl::Seconds(60)};

// A backend that treats every group as a large one.
std::unique_ptr<Backend> MakeSparseBackend() { return MakeSparseTcpBackend(/*most_direct=*/1); }

// One that splits nearly all messages, too.
std::unique_ptr<Backend> MakeSplittingSparseBackend() {
  return MakeSparseTcpBackend(1, {.large_bytes = 100, .review_bytes = 200, .always = true});
}

using conformance::BackendCase;
using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(TcpSparse, BackendConformanceTest,
                         testing::Values(BackendCase{"tcp_sparse", MakeSparseBackend},
                                         BackendCase{"tcp_sparse_splitting",
                                                     MakeSplittingSparseBackend}));

// The number of connected sockets of this process.
int ConnectedSockets() {
  int connected = 0;
  for (int fd = 0; fd < 4096; ++fd) {
    sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    connected += getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
                 peer.ss_family == AF_INET;
  }
  return connected;
}

int Log2RoundedUp(int size) {
  int steps = 0;
  while (1 << steps < size) ++steps;
  return steps;
}

// Rank r's i-th number, and the sum of all ranks'.
int64_t Number(int rank, size_t i) { return (rank + 1) * 1000 + static_cast<int64_t>(i % 97); }
int64_t Sum(int size, size_t i) {
  return 1000LL * size * (size + 1) / 2 + size * static_cast<int64_t>(i % 97);
}

std::vector<int64_t> Numbers(int rank, size_t count) {
  std::vector<int64_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = Number(rank, i);
  return numbers;
}

void ExpectReduces(Communicator& c, size_t count) {
  std::vector<int64_t> data = Numbers(c.rank(), count);
  ASSERT_EQ(
      c.AllReduce(data.data(), data.data(), count, DataType::kInt64, ReduceOp::kSum, kPatient),
      absl::OkStatus());
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], Sum(c.size(), i)) << i << c.ToString();
}

// Rank r contributes r % 3 times `unit` numbers.
void ExpectGathers(Communicator& c, size_t unit) {
  std::vector<size_t> bytes;
  std::vector<int64_t> expected;
  for (int r = 0; r < c.size(); ++r) {
    const std::vector<int64_t> part = Numbers(r, r % 3 * unit);
    bytes.push_back(part.size() * sizeof(int64_t));
    expected.insert(expected.end(), part.begin(), part.end());
  }
  const std::vector<int64_t> own = Numbers(c.rank(), c.rank() % 3 * unit);
  std::vector<int64_t> all(expected.size());
  ASSERT_EQ(c.AllGather(own.data(), all.data(), bytes, kPatient), absl::OkStatus());
  ASSERT_TRUE(all == expected) << unit << c.ToString();
}

void ExpectReduceScatters(Communicator& c, size_t unit) {
  std::vector<size_t> counts;
  for (int r = 0; r < c.size(); ++r) counts.push_back(r % 3 * unit);
  const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const size_t first = std::accumulate(counts.begin(), counts.begin() + c.rank(), size_t{0});
  const std::vector<int64_t> in = Numbers(c.rank(), total);
  std::vector<int64_t> out(counts[c.rank()]);
  ASSERT_EQ(
      c.ReduceScatter(in.data(), out.data(), counts, DataType::kInt64, ReduceOp::kSum, kPatient),
      absl::OkStatus());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], Sum(c.size(), first + i)) << i;
}

void ExpectBroadcasts(Communicator& c, size_t count, int root) {
  std::vector<int64_t> data = Numbers(c.rank(), count);
  ASSERT_EQ(c.Broadcast(data.data(), count * sizeof(int64_t), root, kPatient), absl::OkStatus());
  ASSERT_TRUE(data == Numbers(root, count)) << count << " " << root << c.ToString();
}

void ExpectAllButAllToAllWork(Communicator& c) {
  for (const size_t count : {1u, 1000u, 200000u}) {  // the last one in rings
    ExpectReduces(c, count);
    ExpectGathers(c, count / 20 + 1);
    ExpectReduceScatters(c, count / 20 + 1);
    for (const int root : {0, 1, c.size() - 1}) ExpectBroadcasts(c, count, root);
  }
  ASSERT_EQ(c.Barrier(kPatient), absl::OkStatus());
}

class TcpLargeGroupTest : public testing::TestWithParam<int> {};

TEST_P(TcpLargeGroupTest, EveryOperation_WithFewNeighbours) {
  const int size = GetParam();
  conformance::RankGroup group(MakeTcpBackend());
  group.Connect(size);
  EXPECT_EQ(ConnectedSockets(), 2 * (size - 1)) << "a tree";
  EXPECT_EQ(group.key_exchanges(), size);
  EXPECT_EQ(group.shown_keys(), 2u * (size - 1)) << "what the daemon tells of each end of a link";
  group.Run(ExpectAllButAllToAllWork);
  EXPECT_LE(ConnectedSockets(), size * 2 * Log2RoundedUp(size));
  group.Run([](Communicator& c) {
    const std::vector<size_t> bytes(c.size(), 1);
    std::vector<char> in(c.size(), static_cast<char>(c.rank())), out(c.size());
    ASSERT_EQ(c.AllToAll(in.data(), bytes, out.data(), bytes, kPatient), absl::OkStatus());
    for (int r = 0; r < c.size(); ++r) ASSERT_EQ(out[r], r);
  });
  EXPECT_EQ(ConnectedSockets(), size * (size - 1)) << "all to all";
  group.Run(ExpectAllButAllToAllWork);
}

INSTANTIATE_TEST_SUITE_P(Ranks, TcpLargeGroupTest, testing::Values(17, 20));

TEST(TcpSparseTest, OddSizes) {
  for (const int size : {2, 3, 5, 6, 7, 8, 9}) {
    conformance::RankGroup group(MakeSparseBackend());
    group.Connect(size);
    group.Run(ExpectAllButAllToAllWork);
  }
}

// All ranks wait for some other rank. The failure spreads from link to link, so that it also
// reaches ranks without a link to the lost rank.
TEST(TcpSparseTest, NewsOfALostRankReachEveryone) {
  for (const int lost : {0, 5, 11}) {
    conformance::RankGroup group(MakeSparseBackend());
    group.Connect(12);
    absl::Notification given_up;
    group.Run([&](Communicator& c) {
      if (c.rank() == lost) {
        c.Abort("enough");
        given_up.WaitForNotification();
        return;
      }
      const absl::Status status = c.Barrier({absl::Hours(1)});
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      if (c.rank() == (lost + 1) % c.size()) given_up.Notify();
    });
  }
}

// A subset links its ranks like a separate group.
TEST(TcpSparseTest, SubsetsLinkTheirOwnRanks) {
  const std::unique_ptr<MeshBackend> backend = MakeSparseTcpBackend(2);
  conformance::KeyExchangeTable keys(6);
  conformance::ForEachRank(6, [&](int rank) {
    const auto mesh = backend->ConnectMesh({Epoch(1), rank, 6, "127.0.0.1", "secret"},
                                           *keys.ForRank(rank), absl::Seconds(60));
    ASSERT_TRUE(mesh.ok()) << mesh.status();
    const std::vector<int> ranks =
        rank % 2 == 0 ? std::vector<int>{4, 0, 2} : std::vector<int>{1, 5, 3};
    const std::unique_ptr<Communicator> subset = (*mesh)->Subset(ranks);
    const std::unique_ptr<Communicator> pair = (*mesh)->Subset({rank / 2 * 2, rank / 2 * 2 + 1});
    for (int round = 0; round < 3; ++round) {
      ExpectAllButAllToAllWork(*subset);
      ExpectAllButAllToAllWork(*pair);
      ExpectAllButAllToAllWork(**mesh);
    }
  });
}

}  // namespace
}  // namespace hvd::collectives::tcp
