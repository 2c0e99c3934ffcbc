#include "rendezvous/placement/machines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> Machines(const std::vector<HostSlots>& hosts) {
  std::vector<const HostSlots*> pointers;
  for (const HostSlots& host : hosts) pointers.push_back(&host);
  return MachinesOf(pointers);
}

TEST(MachinesTest, Nobody) { EXPECT_THAT(Machines({}), IsEmpty()); }

TEST(MachinesTest, WithoutAMachine_EachHostIsOne) {
  EXPECT_THAT(Machines({{"a", 1}, {"b", 1}, {"c", 1}}), ElementsAre(0, 1, 2));
}

TEST(MachinesTest, SameMachine_IsThatOfTheFirstHost) {
  EXPECT_THAT(Machines({{"a", 1, "m"}, {"b", 1, "n"}, {"c", 1, "m"}, {"d", 1, "n"}}),
              ElementsAre(0, 1, 0, 1));
}

TEST(MachinesTest, MachineNamedLikeAHost_IsTheMachineOfThatHost) {
  EXPECT_THAT(Machines({{"a", 1}, {"b", 1, "a"}, {"a", 1, "b"}}), ElementsAre(0, 0, 2));
}

}  // namespace
}  // namespace hvd::rendezvous::placement
