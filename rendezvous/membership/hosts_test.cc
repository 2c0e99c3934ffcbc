#include "rendezvous/membership/hosts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

using testing::ElementsAre;

class HostsTest : public testing::Test {
 protected:
  HostsTest() {
    for (const char* name : {"a", "b", "c"}) hosts_.Add({name, 2});
  }

  Hosts hosts_;
};

TEST_F(HostsTest, Find_ByName) {
  EXPECT_EQ(hosts_.IndexOf(*hosts_.Find("b")), 1);
  EXPECT_EQ(hosts_.Find("d"), nullptr);
}

TEST_F(HostsTest, Find_SeveralWithOneName_ReturnsTheFirst) {
  hosts_.Add({"a", 4});
  EXPECT_EQ(hosts_.Find("a")->slots.slots, 2);
  EXPECT_EQ(hosts_.Check(), "");
}

TEST_F(HostsTest, Retain_GivesTheOthersNewIndexes) {
  EXPECT_THAT(hosts_.Retain({true, false, true}), ElementsAre(0, 1, 1));
  EXPECT_EQ(hosts_.IndexOf(*hosts_.Find("c")), 1);
  EXPECT_EQ(hosts_.Find("b"), nullptr);
  EXPECT_EQ(hosts_.Check(), "");
}

TEST_F(HostsTest, Remove_FindsTheOthersWhereTheyAreNow) {
  hosts_.Remove(hosts_[0]);
  EXPECT_EQ(hosts_.IndexOf(*hosts_.Find("b")), 0);
  EXPECT_EQ(hosts_.Check(), "");
}

TEST_F(HostsTest, Attached_CountTheirSlots) {
  hosts_[0].agent = Incarnation(1);
  hosts_[2].agent = Incarnation(2);
  hosts_[1].expected = true;
  EXPECT_EQ(hosts_.AttachedSlots(), 4);
  EXPECT_EQ(hosts_.AttachedMachines(), 2);
  hosts_[2].slots.machine = "a";
  EXPECT_EQ(hosts_.AttachedMachines(), 1);
  EXPECT_THAT(hosts_.AttachedNames(), ElementsAre("a", "c"));
  EXPECT_THAT(hosts_.MissingNames(), ElementsAre("b"));
}

TEST_F(HostsTest, Machines_AreThoseOfTheFirstHosts) {
  EXPECT_THAT(hosts_.Machines(), ElementsAre(0, 1, 2));
  hosts_[0].slots.machine = hosts_[2].slots.machine = "m";
  EXPECT_THAT(hosts_.Machines(), ElementsAre(0, 1, 0));
  EXPECT_LT(hosts_.SlotOnMachine(0, Hosts::kMostSlots - 1), hosts_.SlotOnMachine(2, 0));
}

TEST_F(HostsTest, Check_NamesTheViolation) {
  hosts_[1].away = Incarnation(1);
  EXPECT_EQ(hosts_.Check(), "host b is away, and nobody waits for it");
  hosts_.some_away = true;
  EXPECT_EQ(hosts_.Check(), "");
  hosts_.listed["a"] = 2;
  hosts_.unlisted["a"] = absl::UnixEpoch();
  EXPECT_EQ(hosts_.Check(), "host a is listed and is not");
}

}  // namespace
}  // namespace hvd::rendezvous::membership
