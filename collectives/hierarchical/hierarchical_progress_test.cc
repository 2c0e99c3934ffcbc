// Operations of two hosts with a slow network between them: each lasts several times its timeout.
// Two ranks move the data, the others wait for them in shared memory.
#include <memory>
#include <string>
#include <vector>

#include "collectives/conformance/rank_group.h"
#include "collectives/hierarchical/on_hosts_testing.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/faulty_proxy_testing.h"
#include "collectives/tcp/tcp_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::hierarchical {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr absl::Duration kLong = absl::Seconds(6);  // what the data of a case takes
constexpr size_t kEach = 1 << 20;
constexpr int kRanks = 4;

std::unique_ptr<Backend> Slow(tcp::Fault fault = {}) {
  return MakeBackendOnHosts({[](int rank) { return std::to_string(rank / 2); },
                             [](const std::string&) { return shm::MakeShmBackend(); },
                             [fault] {
                               return std::make_unique<tcp::ProxiedMesh>(
                                   tcp::MakeTcpBackend(), fault,
                                   tcp::Pace::Of(kRanks * kEach, kLong));
                             }});
}

char Letter(int rank) { return static_cast<char>('a' + rank); }

absl::Status Gather(Communicator& c, std::string& all) {
  const std::string own(kEach, Letter(c.rank()));
  return c.AllGather(own.data(), &all[0], std::vector<size_t>(kRanks, kEach), {kTimeout});
}

TEST(HierarchicalProgressTest, AllGather_TheOthersOfAHostWaitForItsData) {
  conformance::RankGroup group(Slow());
  group.Connect(kRanks);
  std::string expected;
  for (int rank = 0; rank < kRanks; ++rank) expected += std::string(kEach, Letter(rank));
  group.Run([&](Communicator& c) {
    std::string all(kRanks * kEach, '?');
    EXPECT_EQ(Gather(c, all), absl::OkStatus());
    EXPECT_TRUE(all == expected);
  });
}

TEST(HierarchicalProgressTest, Broadcast_TheOthersOfAHostWaitForItsData) {
  conformance::RankGroup group(Slow());
  group.Connect(kRanks);
  group.Run([&](Communicator& c) {
    std::string data(kRanks * kEach, Letter(c.rank()));
    EXPECT_EQ(c.Broadcast(&data[0], data.size(), 0, {kTimeout}), absl::OkStatus());
    EXPECT_TRUE(data == std::string(kRanks * kEach, Letter(0)));
  });
}

TEST(HierarchicalProgressTest, DataStopsInTheMiddle_AllFail) {
  conformance::RankGroup group(Slow({tcp::Fault::kStall, kRanks * kEach / 2}));
  group.Connect(kRanks);
  group.Run([](Communicator& c) {
    std::string all(kRanks * kEach, '?');
    EXPECT_FALSE(Gather(c, all).ok());
  });
}

}  // namespace
}  // namespace hvd::collectives::hierarchical
