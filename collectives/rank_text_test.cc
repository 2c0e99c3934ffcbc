#include "collectives/rank_text.h"

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

TEST(RankTextTest, RankText_NamesBackendRankAndEpoch) {
  EXPECT_EQ(RankText("gloo", 1, 4, Epoch(3)), "gloo, rank 1 of 4, epoch 3");
}

TEST(RankTextTest, ConnectError_KeepsTheCodeAndSaysWho) {
  GroupInfo group;
  group.epoch = Epoch(3);
  group.rank = 1;
  group.size = 4;
  EXPECT_EQ(ConnectError("shm", group, absl::UnavailableError("rank 0 is gone")),
            absl::UnavailableError("connecting (shm, rank 1 of 4, epoch 3): rank 0 is gone"));
}

}  // namespace
}  // namespace hvd::collectives
