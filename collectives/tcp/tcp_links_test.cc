#include "collectives/tcp/tcp_links.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/tcp/link_address.h"
#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

constexpr size_t kLargeBytes = 16 << 20;  // more than the kernel takes at once

// Two ranks that are linked, at these addresses.
class TcpLinksTest : public testing::Test {
 protected:
  void SetUp() override { Link("127.0.0.1"); }

  void Link(const std::string& address_of_rank_1) {
    for (auto& links : links_) links.reset();
    std::unique_ptr<TcpMesh> meshes[2];
    for (int rank = 0; rank < 2; ++rank) {
      GroupInfo group = {Epoch(1), rank, 2, rank == 0 ? "127.0.0.1" : address_of_rank_1, "secret"};
      group.on_choice = [this, rank](const std::string& choice) { choices_[rank] = choice; };
      meshes[rank] = *TcpMesh::Open(group);
    }
    for (int rank = 0; rank < 2; ++rank) meshes[rank]->Learn(1 - rank, meshes[1 - rank]->address());
    conformance::ForEachRank(2, [&](int rank) {
      links_[rank] = std::make_unique<TcpLinks>(
          std::move(meshes[rank]),
          SplitRule{.large_bytes = kLargeBytes, .review_bytes = 2 * kLargeBytes});
      ASSERT_TRUE(ConnectAgain(rank).ok());
    });
  }

  absl::Status ConnectAgain(int rank) {
    return links_[rank]->Connect({1 - rank}, absl::InfiniteDuration(), nullptr);
  }

  // Both ranks send each other a large message. Returns the numbers of connections after it.
  std::pair<size_t, size_t> ExchangeLarge() {
    size_t connections[2];
    conformance::ForEachRank(2, [&](int rank) {
      ASSERT_TRUE(ConnectAgain(rank).ok());
      std::string out(kLargeBytes, static_cast<char>('a' + rank)), in(kLargeBytes, '?');
      const auto sent = links_[rank]->MakeRegion(&out[0], out.size());
      const auto received = links_[rank]->MakeRegion(&in[0], in.size());
      ASSERT_TRUE(received->Receive(1 - rank, 0, in.size()).ok());
      ASSERT_TRUE(sent->Send(1 - rank, 0, out.size()).ok());
      ASSERT_TRUE(received->AwaitReceived(1 - rank, absl::InfiniteDuration()).ok());
      ASSERT_TRUE(sent->AwaitSent(1 - rank, absl::InfiniteDuration()).ok());
      EXPECT_TRUE(in == std::string(kLargeBytes, static_cast<char>('a' + 1 - rank)));
      connections[rank] = links_[rank]->ConnectionsTo(1 - rank);
    });
    return {connections[0], connections[1]};
  }

  absl::Status WhatRank1Receives() {
    char byte;
    const auto region = links_[1]->MakeRegion(&byte, 1);
    (void)region->Receive(0, 0, 1);
    return region->AwaitReceived(0, absl::InfiniteDuration());
  }

  std::unique_ptr<TcpLinks> links_[2];
  std::string choices_[2];
};

TEST_F(TcpLinksTest, DelayedMessages_AreSentOverSeveralConnections) {
  Link("127.0.0.2");
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1})) << "the first review decides nothing";
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{8}, size_t{8})) << "in the try";
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{8}, size_t{8})) << "whatever the try has shown";
  EXPECT_EQ(choices_[0].empty(), choices_[1].empty()) << choices_[0] << "; " << choices_[1];
}

TEST_F(TcpLinksTest, OnOneHost_OneConnection) {
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1}));
}

TEST_F(TcpLinksTest, FurtherConnectionsFail_TheFirstOneGoesOn) {
  Link("127.0.0.2");
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1}));
  std::string nobody = links_[0]->mesh().address();
  nobody[kLinkHostBytes - 1] = 3;  // 127.0.0.3, where the port is closed
  links_[1]->mesh().Learn(0, nobody);
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(ExchangeLarge(), std::pair(size_t{1}, size_t{1}));
}

// The destructor waits for the port's thread, which may notice a failure at that moment.
TEST_F(TcpLinksTest, FailureDuringTheDestructor_ReachesThePeerWithItsCause) {
  TcpLinks& links = *links_[0];
  links.mesh().loop().Post([&links] {
    links.mesh().loop().Close();
    links.Break(absl::UnavailableError("rank 1 is gone"), 1);
  });
  links_[0].reset();
  EXPECT_EQ(WhatRank1Receives(), absl::UnavailableError("rank 0 gave up because of rank 1"));
}

TEST_F(TcpLinksTest, CauseIsNotARank_PeerIsBlamed) {
  links_[0]->Break(absl::UnavailableError("rank 7 is gone"), 7);
  EXPECT_EQ(WhatRank1Receives(),
            absl::DataLossError("rank 0 gave up because of rank 7, but there are 2 ranks"));
}

}  // namespace
}  // namespace hvd::collectives::tcp
