#include "collectives/tcp/tcp_links.h"

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "collectives/conformance/rank_group.h"
#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

// Two ranks that are linked.
class TcpLinksTest : public testing::Test {
 protected:
  void SetUp() override {
    std::unique_ptr<TcpMesh> meshes[2];
    for (int rank = 0; rank < 2; ++rank) {
      meshes[rank] = *TcpMesh::Open({Epoch(1), rank, 2, "127.0.0.1", "secret"});
    }
    meshes[1]->Learn(0, meshes[0]->address());
    conformance::ForEachRank(2, [&](int rank) {
      links_[rank] = std::make_unique<TcpLinks>(std::move(meshes[rank]));
      ASSERT_TRUE(links_[rank]->Connect({1 - rank}, absl::InfiniteFuture(), nullptr).ok());
    });
  }

  absl::Status WhatRank1Receives() {
    char byte;
    const auto region = links_[1]->MakeRegion(&byte, 1);
    (void)region->Receive(0, 0, 1);
    return region->AwaitReceived(0, absl::InfiniteFuture());
  }

  std::unique_ptr<TcpLinks> links_[2];
};

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

TEST_F(TcpLinksTest, CauseThatIsNoRank_IsBlamedOnThePeer) {
  links_[0]->Break(absl::UnavailableError("rank 7 is gone"), 7);
  EXPECT_EQ(WhatRank1Receives(),
            absl::InternalError("rank 0 gave up because of rank 7, but there are 2 ranks"));
}

}  // namespace
}  // namespace hvd::collectives::tcp
