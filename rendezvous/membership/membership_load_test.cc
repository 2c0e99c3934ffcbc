// Damaged snapshots: Load rejects them, or the machine still works with them.
#include <algorithm>
#include <string>

#include "proto/snapshot.pb.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/testing/membership_fixture.h"
#include "rendezvous/snapshot/mutations_test_util.h"

namespace hvd::rendezvous::membership {
namespace {

class MembershipLoadTest : public MembershipFixture {
 protected:
  bool IsRefused(const pb::journal::MembershipState& saved) {
    const absl::Status status = Membership::Load(spec(), saved).status();
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    return !status.ok();
  }

  // The machine with this state takes ticks until the job has ended.
  void GoOn(const pb::journal::MembershipState& saved) {
    const auto machine = Membership::Load(spec(), saved);
    if (!machine.ok()) return;
    absl::Time time = now() + absl::Hours(1);
    for (int turn = 0; turn < 10; ++turn) {
      (*machine)->Apply(Tick(), time);
      (*machine)->Describe();
      time = std::max(time, std::min((*machine)->NextDeadline(), time + absl::Hours(1)));
    }
  }

  void DamageEverything() {
    pb::journal::MembershipState saved = machine().Save();
    EXPECT_FALSE(IsRefused(saved));
    snapshot::Mutations mutations([&](const std::string& what) {
      RecordProperty("newest", what);
      GoOn(saved);
    });
    mutations.Of(&saved);
  }

  // Workers 1, 2 and 3 are in a world, 2 and 3 let 1 wait; 2's sample has come.
  void RunStalledJob() {
    RunJob({{"a", 2}, {"b", 1}});
    StallReported stall;
    stall.call = CallId(1000);
    stall.worker = {WorkerId(1), Incarnation(100)};
    stall.epoch = Epoch(1);
    stall.waited = absl::Minutes(1);
    stall.give_up = true;
    stall.waiting = {{"allreduce 'a'", {1, 2}}};
    Apply(stall);
    Apply(WorkerSampled{WorkerId(2), "sleeps", {"main", "sleep"}});
  }
};

TEST_F(MembershipLoadTest, NotStarted_DamagedAnywhere_IsRefusedOrSurvived) {
  NewJob({{"a", 1}, {"b", 1}});
  Attach("a", 1);
  DamageEverything();
}

TEST_F(MembershipLoadTest, Stalled_DamagedAnywhere_IsRefusedOrSurvived) {
  RunStalledJob();
  Watch(1, 1);
  Exchange(1, 1, "key", "value");
  DamageEverything();
}

TEST_F(MembershipLoadTest, CauseAwaited_DamagedAnywhere_IsRefusedOrSurvived) {
  RunJob({{"a", 1}, {"b", 1}});
  FailWith(1, 1, "rank 1 is gone", true);
  Exit(1, 1);
  DamageEverything();
}

TEST_F(MembershipLoadTest, Ended_DamagedAnywhere_IsRefusedOrSurvived) {
  RunJob({{"a", 1}, {"b", 1}});
  Kill(1, 9);
  DamageEverything();
}

TEST_F(MembershipLoadTest, CauseAwaitedWithoutAFailure_IsRefused) {
  RunJob({{"a", 1}});
  pb::journal::MembershipState saved = machine().Save();
  saved.set_settle_deadline_ns(1);
  EXPECT_TRUE(IsRefused(saved));
}

TEST_F(MembershipLoadTest, StallOfRanksThatAreNotThere_IsRefused) {
  RunStalledJob();
  const pb::journal::MembershipState saved = machine().Save();
  ASSERT_EQ(saved.epochs().stalls_size(), 1);
  pb::journal::MembershipState damaged = saved;
  damaged.mutable_epochs()->mutable_stalls(0)->mutable_report()->mutable_waiting(0)->set_missing(0,
                                                                                                 3);
  EXPECT_TRUE(IsRefused(damaged));
  damaged = saved;
  damaged.mutable_epochs()->mutable_stalls(0)->mutable_samples(0)->set_key(9);
  EXPECT_TRUE(IsRefused(damaged));
}

TEST_F(MembershipLoadTest, EndedWithoutAVerdict_IsRefused) {
  RunJob({{"a", 1}});
  pb::journal::MembershipState saved = machine().Save();
  saved.set_finished(true);
  EXPECT_TRUE(IsRefused(saved));
}

TEST_F(MembershipLoadTest, MoreSlotsThanAHostCanHave_IsRefused) {
  RunJob({{"a", 1}});
  pb::journal::MembershipState saved = machine().Save();
  saved.mutable_hosts()->mutable_hosts(0)->mutable_slots()->set_slots(Hosts::kMostSlots + 1);
  EXPECT_TRUE(IsRefused(saved));
}

}  // namespace
}  // namespace hvd::rendezvous::membership
