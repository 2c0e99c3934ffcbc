// Large jobs, in which one run of Reconcile serves several events.
#include "gmock/gmock.h"
#include "rendezvous/membership/testing/membership_fixture.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class MembershipThrottleTest : public MembershipFixture {
 protected:
  // From 2 workers on this is a large job. They have been started now.
  MembershipThrottleTest() {
    policy::JobSpec spec;
    spec.min_workers = spec.max_workers = 2;
    spec.elastic.emplace();
    large_ = std::make_unique<Membership>(spec, now(),
                                          Membership::ReconcileThrottle{2, absl::Seconds(1)});
    EXPECT_THAT(Only<StartWorkerEffect>(large_->Apply(HostJoined{{"a", 2}, Incarnation(1)}, now())),
                SizeIs(2));
  }

  Effects JoinAt(absl::Duration time, uint64_t worker) {
    const WorkerKey key{WorkerId(worker), Incarnation(worker)};
    return large_->Apply(JoinRequested{CallId(worker), key, Epoch(0), "10.0.0.1", 4000, false, 0},
                         now() + time);
  }
  Effects TickAt(absl::Duration time) { return large_->Apply(Tick{}, now() + time); }

  std::unique_ptr<Membership> large_;
};

TEST_F(MembershipThrottleTest, Apply_EventsOfAMoment_OneLookServesAll) {
  EXPECT_THAT(JoinAt(absl::Seconds(0.5), 1), IsEmpty());
  EXPECT_THAT(JoinAt(absl::Seconds(1), 2), IsEmpty()) << "there is no look yet";
  EXPECT_EQ(large_->NextDeadline(), now() + absl::Seconds(2)) << "1 s for each worker";
  EXPECT_THAT(Only<ReplyWorld>(TickAt(absl::Seconds(2))), SizeIs(2));
}

TEST_F(MembershipThrottleTest, Apply_EventAfterAQuietTime_IsLookedAtNow) {
  JoinAt(absl::Seconds(0.5), 1);
  TickAt(absl::Seconds(2));
  EXPECT_THAT(Only<ReplyWorld>(JoinAt(absl::Seconds(4), 2)), SizeIs(2));
}

TEST_F(MembershipThrottleTest, Apply_TickBeforeItsTime_ChangesNothing) {
  const absl::Time deadline = large_->NextDeadline();
  EXPECT_GT(deadline, now() + absl::Seconds(2)) << "nothing is to be looked at";
  TickAt(absl::Seconds(1));
  EXPECT_EQ(large_->NextDeadline(), deadline);
}

TEST_F(MembershipThrottleTest, Apply_JobEnds_IsNotPutOff) {
  const Effects effects =
      large_->Apply(StopRequested{"stop", 3, absl::ZeroDuration()}, now() + absl::Seconds(1));
  EXPECT_THAT(Only<StopWorkersEffect>(effects), SizeIs(1));
}

}  // namespace
}  // namespace hvd::rendezvous::membership
