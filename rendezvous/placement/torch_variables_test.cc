#include "rendezvous/placement/torch_variables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(TorchVariablesTest, StaticJob_HasAll) {
  EXPECT_THAT(
      TorchVariables({5, 6, 1, 2, 0, 3}, {"", 2, 3}),
      ElementsAre(Pair("GROUP_RANK", "2"), Pair("GROUP_WORLD_SIZE", "3"), Pair("LOCAL_RANK", "1"),
                  Pair("LOCAL_WORLD_SIZE", "2"), Pair("RANK", "5"), Pair("ROLE_RANK", "5"),
                  Pair("ROLE_WORLD_SIZE", "6"), Pair("WORLD_SIZE", "6")));
}

TEST(TorchVariablesTest, GroupsAreNotKnown_HasNone) {
  EXPECT_THAT(TorchVariables({5, 6, 1, 2, 0, 3}, {}), IsEmpty());
}

}  // namespace
}  // namespace hvd::rendezvous::placement
