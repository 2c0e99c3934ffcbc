#include "rendezvous/placement/placement_variables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::placement {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(PlacementVariablesTest, EveryField_HasItsVariable) {
  EXPECT_THAT(
      PlacementVariables({1, 2, 3, 4, 5, 6}),
      UnorderedElementsAre(Pair("HOROVOD_RANK", "1"), Pair("HOROVOD_SIZE", "2"),
                           Pair("HOROVOD_LOCAL_RANK", "3"), Pair("HOROVOD_LOCAL_SIZE", "4"),
                           Pair("HOROVOD_CROSS_RANK", "5"), Pair("HOROVOD_CROSS_SIZE", "6")));
}

}  // namespace
}  // namespace hvd::rendezvous::placement
