#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/membership_fixture.h"
#include "tests/support/status_matchers.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kCancelled = absl::StatusCode::kCancelled;

using MembershipCallsTest = MembershipFixture;

TEST_F(MembershipCallsTest, JoinWorld_AllAsked_AllGetTheSameWorld) {
  StartJob({{"a", 1}, {"b", 1}});
  const int second = Join(2);
  EXPECT_TRUE(IsParked(second));
  const int first = Join(1);
  const World world = WorldOf(first);
  EXPECT_EQ(world.epoch, Epoch(1));
  ASSERT_THAT(world.members, SizeIs(2));
  EXPECT_EQ(world.members[1].worker.incarnation, Incarnation(200));
  EXPECT_EQ(world.members[1].host, "b");
  EXPECT_EQ(world.members[1].address, "10.0.0.1");
  EXPECT_EQ(world.members[1].port, 4002);
  EXPECT_EQ(world.members[1].place.rank, 1);
  EXPECT_EQ(world.members[1].place.cross_rank, 1);
  EXPECT_EQ(world.members[1].place.cross_size, 2);
  EXPECT_EQ(WorldOf(second).members[0].worker.incarnation, Incarnation(100));
}

TEST_F(MembershipCallsTest, JoinWorld_Repeated_ReplacesTheParkedCall) {
  StartJob({{"a", 2}});
  const int old_call = Join(1);
  const int new_call = Join(1);
  EXPECT_THAT(StatusOf(old_call), StatusIs(kCancelled));
  Join(2);
  EXPECT_EQ(WorldOf(new_call).epoch, Epoch(1));
}

TEST_F(MembershipCallsTest, JoinWorld_AnswerWasLost_GetsTheSameWorldAgain) {
  RunJob({{"a", 2}});
  const int watch = Watch(2, 1);
  EXPECT_EQ(WorldOf(Join(1, 0)).epoch, Epoch(1));
  EXPECT_TRUE(IsParked(watch));
}

TEST_F(MembershipCallsTest, JoinWorld_NewIncarnation_SupersedesTheOlderProcess) {
  StartJob({{"a", 2}});
  const int old_call = Join(1, 0, 11);
  const int new_call = Join(1, 0, 12);
  EXPECT_THAT(StatusOf(old_call), StatusIs(kFailedPrecondition, HasSubstr("a newer process")));
  EXPECT_THAT(StatusOf(Join(1, 0, 11)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Watch(1, 1, 11)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Exchange(1, 1, "k", "v", 11)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Finish(1, 1, 11)), StatusIs(kFailedPrecondition));
  Join(2);
  EXPECT_EQ(WorldOf(new_call).members[0].worker.incarnation, Incarnation(12));
}

TEST_F(MembershipCallsTest, JoinWorld_NewIncarnationInTheMiddle_BreaksTheEpoch) {
  RunJob({{"a", 2}});
  const int own_watch = Watch(1, 1);
  const int watch = Watch(2, 1);
  const int exchange = Exchange(2, 1, "k", "v");
  Join(1, 0, 11);
  EXPECT_THAT(StatusOf(own_watch), StatusIs(kFailedPrecondition));
  EXPECT_EQ(WatchOf(watch).change, EpochChange::kBroken);
  EXPECT_THAT(WatchOf(watch).reason,
              HasSubstr("another process of rank 0 on host a has called hvd.init()"));
  EXPECT_THAT(StatusOf(exchange), StatusIs(kFailedPrecondition));
}

TEST_F(MembershipCallsTest, JoinWorld_WithoutFinishing_BreaksTheEpoch) {
  RunJob({{"a", 2}});
  const int watch = Watch(2, 1);
  const int first = Join(1, 1);
  EXPECT_THAT(WatchOf(watch).reason, HasSubstr("rank 0 on host a asks for the next world"));
  EXPECT_EQ(WatchOf(Watch(2, 1)).reason, WatchOf(watch).reason) << "told at once";
  Join(2, 1);
  EXPECT_EQ(WorldOf(first).epoch, Epoch(2));
}

TEST_F(MembershipCallsTest, JoinWorld_HundredCycles_FinishersDisturbNobody) {
  RunJob({{"a", 2}});
  for (int epoch = 1; epoch <= 100; ++epoch) {
    const int watch = Watch(2, epoch);
    Finish(1, epoch);
    const int first = Join(1, epoch);
    EXPECT_TRUE(IsParked(watch)) << "rank 1 may be about to finish too";
    Finish(2, epoch);
    const int second = Join(2, epoch);
    EXPECT_EQ(WorldOf(first).epoch, Epoch(epoch + 1));
    EXPECT_EQ(WorldOf(second).epoch, Epoch(epoch + 1));
    EXPECT_EQ(WatchOf(watch).change, EpochChange::kBroken);
  }
}

TEST_F(MembershipCallsTest, JoinWorld_AfterAWorldThatNeverWas_IsRefused) {
  StartJob({{"a", 1}});
  EXPECT_THAT(StatusOf(Join(1, 7)), StatusIs(kFailedPrecondition, HasSubstr("world 7")));
}

TEST_F(MembershipCallsTest, UnknownWorker_IsNotFound) {
  RunJob({{"a", 1}});
  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  EXPECT_THAT(StatusOf(Join(9)), StatusIs(kNotFound, HasSubstr("worker 9")));
  EXPECT_THAT(StatusOf(Watch(9, 1)), StatusIs(kNotFound));
  EXPECT_THAT(StatusOf(Exchange(9, 1, "k", "v")), StatusIs(kNotFound));
  EXPECT_THAT(StatusOf(Finish(0, 1)), StatusIs(kNotFound));
  Apply(StopRequested{"x", 1, absl::Seconds(1)});
  EXPECT_THAT(StatusOf(Watch(9, 1)), StatusIs(kNotFound)) << "when the job is over, too";
  EXPECT_THAT(StatusOf(Finish(9, 1)), StatusIs(kNotFound));
}

TEST_F(MembershipCallsTest, WatchEpoch_KnowsPastPresentAndFuture) {
  RunJob({{"a", 2}});
  EXPECT_THAT(StatusOf(Watch(1, 0)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Watch(1, 2)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Watch(1, 1, 77)), StatusIs(kFailedPrecondition)) << "a stranger";
  const int watch = Watch(1, 1);
  EXPECT_TRUE(IsParked(watch));
  Join(1, 1);
  Join(2, 1);
  EXPECT_EQ(WatchOf(Watch(1, 1)).reason, "world 2 has begun");
}

TEST_F(MembershipCallsTest, Exchange_AllGave_AllGetTheValuesInRankOrder) {
  RunJob({{"a", 2}});
  const int second = Exchange(2, 1, "k", "two");
  EXPECT_TRUE(IsParked(second));
  const int first = Exchange(1, 1, "k", "one");
  EXPECT_THAT(ValuesOf(first), ElementsAre("one", "two"));
  EXPECT_THAT(ValuesOf(second), ElementsAre("one", "two"));
}

TEST_F(MembershipCallsTest, Exchange_BadArguments_AreRefused) {
  RunJob({{"a", 2}});
  EXPECT_THAT(StatusOf(Exchange(1, 2, "k", "v")), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Exchange(1, 0, "k", "v")), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Exchange(1, 1, "k", "v", 77)), StatusIs(kFailedPrecondition));
  constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(StatusOf(Exchange(1, 1, "", "v")), StatusIs(kInvalidArgument));
  EXPECT_THAT(StatusOf(Exchange(1, 1, "k", std::string((1 << 20) + 1, 'x'))),
              StatusIs(kInvalidArgument));
}

TEST_F(MembershipCallsTest, Exchange_OldRounds_AreGoneInTheNextEpoch) {
  RunJob({{"a", 2}});
  const int parked = Exchange(1, 1, "k", "old");
  Join(1, 1);
  Join(2, 1);
  EXPECT_THAT(StatusOf(parked), StatusIs(kFailedPrecondition, HasSubstr("world 1 is broken")));
  Exchange(1, 2, "k", "new");
  EXPECT_THAT(ValuesOf(Exchange(2, 2, "k", "new too")), ElementsAre("new", "new too"));
}

TEST_F(MembershipCallsTest, Finished_WaitersForItsValueGetAnError) {
  RunJob({{"a", 2}});
  const int watch = Watch(2, 1);
  const int exchange = Exchange(2, 1, "k", "v");
  EXPECT_THAT(StatusOf(Finish(1, 1)), IsOk());
  EXPECT_TRUE(IsParked(watch));
  EXPECT_THAT(StatusOf(exchange),
              StatusIs(kFailedPrecondition, HasSubstr("rank 0 on host a has left world 1")));
  EXPECT_THAT(StatusOf(Exchange(2, 1, "l", "v")), StatusIs(kFailedPrecondition));
}

TEST_F(MembershipCallsTest, Finished_ForAnEpochItIsNotIn_IsRefused) {
  RunJob({{"a", 2}});
  EXPECT_THAT(StatusOf(Finish(1, 2)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Finish(1, 0)), IsOk());
  EXPECT_EQ(machine().Describe().hosts[0].workers[0].state, lifecycle::WorkerState::kRunning);
}

TEST_F(MembershipCallsTest, Failure_BreaksTheEpoch) {
  RunJob({{"a", 2}});
  const int watch = Watch(2, 1);
  EXPECT_THAT(StatusOf(FailWith(1, 1, "ValueError: boom\n")), IsOk());
  EXPECT_EQ(WatchOf(watch).reason, "rank 0 on host a failed: ValueError: boom");
  EXPECT_THAT(StatusOf(Exchange(2, 1, "k", "v")), StatusIs(kFailedPrecondition));
}

TEST_F(MembershipCallsTest, CallCancelled_WithdrawsWhatWasAsked) {
  StartJob({{"a", 2}});
  const int join = Join(1);
  Apply(CallCancelled{CallId(join)});
  EXPECT_THAT(StatusOf(join), StatusIs(kCancelled));
  EXPECT_TRUE(IsParked(Join(2))) << "rank 0 does not wait any more";
  Join(1);
  const int watch = Watch(1, 1);
  const int exchange = Exchange(1, 1, "k", "v");
  Apply(CallCancelled{CallId(watch)});
  Apply(CallCancelled{CallId(exchange)});
  Apply(CallCancelled{CallId(exchange)});
  EXPECT_THAT(StatusOf(watch), StatusIs(kCancelled));
  EXPECT_THAT(StatusOf(exchange), StatusIs(kCancelled));
  EXPECT_TRUE(IsParked(Exchange(2, 1, "k", "v")));
}

TEST_F(MembershipCallsTest, JobOver_ParkedAndLaterCallsAreAnswered) {
  RunJob({{"a", 3}});
  const int watch = Watch(1, 1);
  const int exchange = Exchange(1, 1, "k", "v");
  Exit(3, 3);
  EXPECT_EQ(WatchOf(watch).change, EpochChange::kJobOver);
  EXPECT_EQ(WatchOf(watch).reason, "rank 2 on host a failed: exit code 3");
  EXPECT_THAT(StatusOf(exchange), StatusIs(kFailedPrecondition, HasSubstr("exit code 3")));
  EXPECT_EQ(WatchOf(Watch(1, 1)).change, EpochChange::kJobOver);
  EXPECT_THAT(StatusOf(Join(1, 1)), StatusIs(kFailedPrecondition, HasSubstr("exit code 3")));
  EXPECT_THAT(StatusOf(Exchange(1, 1, "k", "v")), StatusIs(kFailedPrecondition));
  EXPECT_THAT(StatusOf(Finish(1, 1)), IsOk()) << "it is still finishing";
  EXPECT_THAT(StatusOf(FailWith(1, 1, "peer gone", true)), IsOk());
}

TEST_F(MembershipCallsTest, JobOver_ParkedJoinsAreAnswered) {
  StartJob({{"a", 2}});
  const int join = Join(1);
  Exit(2, 3);
  EXPECT_THAT(StatusOf(join), StatusIs(kFailedPrecondition, HasSubstr("exit code 3")));
}

TEST_F(MembershipCallsTest, WorkerThatExited_HasNoSay) {
  RunJob({{"a", 2}});
  Finish(1, 1);
  const int watch = Watch(1, 1);
  Exit(1, 0);
  EXPECT_THAT(StatusOf(watch), StatusIs(kFailedPrecondition, HasSubstr("has exited")));
  EXPECT_THAT(StatusOf(Join(1, 1)), StatusIs(kFailedPrecondition, HasSubstr("has exited")));
  EXPECT_THAT(StatusOf(Finish(1, 1)), StatusIs(kFailedPrecondition));
}

}  // namespace
}  // namespace hvd::rendezvous::membership
