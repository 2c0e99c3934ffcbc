#include "rendezvous/transport/placement_message.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::transport {
namespace {

TEST(PlacementMessageTest, EveryField_GoesThereAndBack) {
  const pb::Placement message = ToMessage(placement::Placement{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(message.ShortDebugString(),
            "rank: 1 size: 2 local_rank: 3 local_size: 4 cross_rank: 5 cross_size: 6");
  EXPECT_EQ(ToMessage(FromMessage(message)).SerializeAsString(), message.SerializeAsString());
}

TEST(PlacementMessageTest, TorchGroup_GoesThereAndBack) {
  const pb::TorchGroup message = ToMessage(placement::TorchGroup{"10.0.0.1:80", 1, 2});
  EXPECT_EQ(message.ShortDebugString(), "store_address: \"10.0.0.1:80\" group_rank: 1 groups: 2");
  EXPECT_EQ(ToMessage(FromMessage(message)).SerializeAsString(), message.SerializeAsString());
}

}  // namespace
}  // namespace hvd::rendezvous::transport
