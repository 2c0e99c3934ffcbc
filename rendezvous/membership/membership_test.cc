#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/membership_fixture.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::IsEmpty;

using MembershipTest = MembershipFixture;

TEST_F(MembershipTest, NextDeadline_FollowsThePhases) {
  NewJob({{"a", 2}});
  EXPECT_EQ(machine().NextDeadline(), now() + absl::Seconds(30)) << "hosts attach";
  Attach("a", 2);
  EXPECT_EQ(machine().NextDeadline(), absl::InfiniteFuture()) << "workers run";
  Join(1);
  Join(2);
  FailWith(1, 1, "lost a peer", true);
  Exit(1, 1);
  EXPECT_EQ(machine().NextDeadline(), now() + absl::Milliseconds(500)) << "a cause may show";
  Advance(absl::Milliseconds(500));
  EXPECT_EQ(machine().NextDeadline(), now() + absl::Seconds(6)) << "workers go";
  Kill(2, 15);
  EXPECT_EQ(machine().NextDeadline(), absl::InfiniteFuture()) << "it is over";
}

TEST_F(MembershipTest, Tick_BeforeTheDeadline_ChangesNothing) {
  NewJob({{"a", 1}});
  EXPECT_THAT(Advance(absl::Seconds(29)), IsEmpty());
  Attach("a", 1);
  EXPECT_THAT(Advance(absl::Hours(100)), IsEmpty());
}

}  // namespace
}  // namespace hvd::rendezvous::membership
