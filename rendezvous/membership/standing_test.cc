#include "rendezvous/membership/standing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/small_job.h"

namespace hvd::rendezvous::membership {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Move = lifecycle::WorkerLifecycle::Move;

// Two members of a world, on two hosts.
class StandingTest : public testing::Test {
 protected:
  StandingTest() {
    job_.AddHost("a");
    job_.AddHost("b");
    job_.AddMember(0);
    job_.AddMember(1);
  }

  Worker& worker(int index) { return job_.workers[index]; }
  void Finish(int index) { worker(index).life.Make(Move::kFinish); }
  void Fail(int index) { job_.workers.End(&worker(index), Move::kEndBadly, &job_.hosts); }

  SmallJob job_;
  const Standing& standing_ = job_.standing;
};

TEST_F(StandingTest, IsLeaving_DrainRestOrFewerSlots) {
  EXPECT_FALSE(standing_.IsLeaving(worker(0)));
  EXPECT_TRUE(standing_.IsLive(worker(0)));
  job_.hosts[0].UseSlots(0);
  EXPECT_TRUE(standing_.IsLeaving(worker(0)));
  EXPECT_FALSE(standing_.IsLive(worker(0)));
  job_.hosts[0].UseSlots(2);
  job_.hosts[0].rests_until = absl::InfiniteFuture();
  EXPECT_TRUE(standing_.IsLeaving(worker(0)));
  job_.Drain(job_.hosts[1], job_.now);
  EXPECT_TRUE(standing_.IsLeaving(worker(1)));
}

TEST_F(StandingTest, IsReadyNewcomer_AsksForItsFirstWorldAndStays) {
  job_.AddWorker(0);
  EXPECT_FALSE(standing_.IsReadyNewcomer(worker(2)));
  job_.Ask(worker(2));
  EXPECT_TRUE(standing_.IsReadyNewcomer(worker(2)));
  job_.Ask(worker(0));
  EXPECT_FALSE(standing_.IsReadyNewcomer(worker(0))) << "it is a member";
  job_.Drain(job_.hosts[0], job_.now);
  EXPECT_FALSE(standing_.IsReadyNewcomer(worker(2)));
}

TEST_F(StandingTest, MayComeAgain_AfterItFinishedInAWholeWorld) {
  EXPECT_FALSE(standing_.MayComeAgain(worker(0)));
  Finish(0);
  EXPECT_TRUE(standing_.MayComeAgain(worker(0)));
  worker(0).life.Make(Move::kStop);
  EXPECT_FALSE(standing_.MayComeAgain(worker(0)));
  Finish(1);
  job_.BreakWorld();
  EXPECT_FALSE(standing_.MayComeAgain(worker(1)));
}

TEST_F(StandingTest, IsFinishing_UnlessTheOthersGoOn) {
  EXPECT_FALSE(standing_.IsFinishing());
  Finish(0);
  EXPECT_TRUE(standing_.IsFinishing());
  job_.BreakWorld();
  EXPECT_FALSE(standing_.IsFinishing()) << "rank 1 continues";
  EXPECT_TRUE(standing_.ComingTogether());
  Fail(1);
  EXPECT_FALSE(standing_.SomeGoOn());
  EXPECT_TRUE(standing_.IsFinishing());
  EXPECT_FALSE(standing_.ComingTogether());
}

TEST_F(StandingTest, ComingTogether_OnceAMemberAsks) {
  EXPECT_FALSE(standing_.ComingTogether());
  job_.Ask(worker(0));
  EXPECT_TRUE(standing_.ComingTogether());
  EXPECT_TRUE(standing_.SomeMemberAsks());
  EXPECT_FALSE(standing_.AllMembersAsk());
  EXPECT_THAT(standing_.LateSurvivors(), ElementsAre(1));
  job_.Ask(worker(1));
  EXPECT_TRUE(standing_.AllMembersAsk());
  EXPECT_THAT(standing_.LateSurvivors(), IsEmpty());
}

TEST_F(StandingTest, ComingTogether_BeforeTheFirstWorld) {
  SmallJob job;
  EXPECT_TRUE(job.standing.ComingTogether());
  EXPECT_EQ(job.standing.OldWorldEnds(), absl::InfinitePast());
}

TEST_F(StandingTest, OldWorldEnds_WhenTheLastUnreachableMemberMustHaveStopped) {
  worker(0).may_train_until = job_.now;
  EXPECT_EQ(standing_.OldWorldEnds(), absl::InfinitePast()) << "rank 1 is known to have left";
  worker(1).may_train_until = job_.now + absl::Seconds(1);
  EXPECT_EQ(standing_.OldWorldEnds(), job_.now + absl::Seconds(1));
}

TEST_F(StandingTest, ToCandidates_NewcomersHaveNoRank) {
  job_.hosts[1].slots.machine = job_.hosts[0].slots.machine = "m";
  worker(1).commit = 4;
  job_.AddNewcomer(1);
  const auto candidates = standing_.ToCandidates({&worker(1), &worker(2)});
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].machine, 0);
  EXPECT_EQ(candidates[0].previous_rank, 1);
  EXPECT_EQ(candidates[0].commit, 4u);
  EXPECT_EQ(candidates[1].previous_rank, -1);
  EXPECT_NE(candidates[0].slot, candidates[1].slot);
}

}  // namespace
}  // namespace hvd::rendezvous::membership
