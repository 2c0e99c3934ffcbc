#include "rendezvous/membership/decisions/planned_change.h"

#include "gtest/gtest.h"
#include "rendezvous/membership/testing/small_job.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

using Move = lifecycle::WorkerLifecycle::Move;

// Two members on two hosts. Two workers are enough, three the most.
class PlannedChangeTest : public testing::Test {
 protected:
  PlannedChangeTest() {
    spec_.min_workers = 2;
    spec_.max_workers = 3;
    spec_.elastic.emplace().join_delay = absl::Seconds(1);
    job_.AddHost("a");
    job_.AddHost("b");
    job_.AddMember(0);
    job_.AddMember(1);
  }

  std::string Wanted(absl::Duration later = absl::ZeroDuration()) {
    return WantedChange(spec_, job_.standing, job_.now + later);
  }
  absl::Duration Next() { return NextChange(spec_, job_.standing, job_.now) - job_.now; }
  // Half of the time is the wait for a replacement.
  void DrainFor(Host& host, absl::Duration time) {
    job_.Drain(host, job_.now + time);
    host.drain->since = job_.now;
  }

  policy::JobSpec spec_;
  SmallJob job_;
};

TEST_F(PlannedChangeTest, NothingHasChanged_None) {
  EXPECT_EQ(Wanted(), "");
  EXPECT_EQ(Next(), absl::InfiniteDuration());
}

TEST_F(PlannedChangeTest, ANewcomerIsReady_ItJoins) {
  job_.AddNewcomer(0);
  EXPECT_EQ(Wanted(), "1 worker to join");
  spec_.max_workers = 2;
  EXPECT_EQ(Wanted(), "") << "there is no room";
}

TEST_F(PlannedChangeTest, AnotherNewcomerIsOnItsWay_JoinDelayForIt) {
  spec_.max_workers = 4;
  job_.AddNewcomer(0);
  job_.AddWorker(1);
  EXPECT_EQ(Wanted(), "");
  EXPECT_EQ(Next(), absl::Seconds(1));
  EXPECT_EQ(Wanted(absl::Seconds(1)), "1 worker to join");
  job_.Ask(job_.workers[3]);
  EXPECT_EQ(Wanted(), "2 workers to join");
}

TEST_F(PlannedChangeTest, AHostDrains_ReplacementsAreAwaited) {
  DrainFor(job_.hosts[1], absl::Seconds(20));
  EXPECT_EQ(Wanted(), "") << "too few workers would remain";
  EXPECT_EQ(Next(), absl::Seconds(10));
  EXPECT_EQ(Wanted(absl::Seconds(10)), "host b to leave");
  job_.AddNewcomer(0);
  EXPECT_EQ(Wanted(), "host b to leave");
}

TEST_F(PlannedChangeTest, AHostRestsOrHasFewerSlots_AtOnce) {
  job_.hosts[1].rests_until = absl::InfiniteFuture();
  EXPECT_EQ(Wanted(), "host b to rest");
  job_.hosts[1].rests_until = absl::InfinitePast();
  job_.hosts[0].UseSlots(0);
  EXPECT_EQ(Wanted(), "fewer slots on host a");
  DrainFor(job_.hosts[1], absl::ZeroDuration());
  EXPECT_EQ(Wanted(), "host b to leave") << "the reason that is named first";
}

TEST_F(PlannedChangeTest, TooManyWorkers_UnlessTheJobIsFinishing) {
  spec_.min_workers = spec_.max_workers = 1;
  EXPECT_EQ(Wanted(), "at most 1 worker from now on");
  job_.workers[0].life.Make(Move::kFinish);
  EXPECT_EQ(Wanted(), "");
}

TEST_F(PlannedChangeTest, Next_NoneWhileTheNextWorldIsAwaited) {
  job_.AddNewcomer(0);
  job_.AddWorker(0);
  EXPECT_EQ(Next(), absl::Seconds(1));
  job_.epochs.changing = "1 worker to join";
  EXPECT_EQ(Next(), absl::InfiniteDuration());
  job_.epochs.changing.reset();
  job_.BreakWorld();
  EXPECT_EQ(Next(), absl::InfiniteDuration());
}

}  // namespace
}  // namespace hvd::rendezvous::membership::decisions
