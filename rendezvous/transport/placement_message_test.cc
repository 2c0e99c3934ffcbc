#include "rendezvous/transport/placement_message.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::transport {
namespace {

TEST(PlacementMessageTest, EveryField_GoesThereAndBack) {
  const pb::Placement message = ToMessage({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(message.ShortDebugString(),
            "rank: 1 size: 2 local_rank: 3 local_size: 4 cross_rank: 5 cross_size: 6");
  EXPECT_EQ(ToMessage(FromMessage(message)).SerializeAsString(), message.SerializeAsString());
}

}  // namespace
}  // namespace hvd::rendezvous::transport
