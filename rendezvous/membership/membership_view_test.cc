#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/membership_fixture.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class MembershipViewTest : public MembershipFixture {
 protected:
  std::string Explain() { return machine().Explain(); }
  absl::string_view JobState() { return StateName(machine().Describe().state); }
  std::vector<absl::string_view> WorkerStates() {
    std::vector<absl::string_view> states;
    for (const auto& host : machine().Describe().hosts) {
      for (const auto& worker : host.workers) states.push_back(StateName(worker.state));
    }
    return states;
  }
};

TEST_F(MembershipViewTest, Explain_Hosts) {
  NewJob({{"a", 1}, {"b", 1}, {"c", 1}});
  Attach("a", 1);
  EXPECT_EQ(Explain(), "waiting for hosts b, c to attach (1 of 3 attached)");
  EXPECT_EQ(JobState(), "forming");
  EXPECT_TRUE(machine().Describe().hosts[0].attached);
  EXPECT_FALSE(machine().Describe().hosts[1].attached);
}

TEST_F(MembershipViewTest, Explain_Slots) {
  policy::JobSpec spec;
  spec.max_workers = 4;
  Membership machine(spec, now());
  machine.Apply(HostJoined{{"x", 3}, Incarnation(1)}, now());
  EXPECT_EQ(machine.Explain(), "waiting for more hosts to attach (3 of 4 slots, on host x)");
  EXPECT_EQ(machine.Describe().waits_for, Membership::Wait::kHosts);
  EXPECT_EQ(machine.Describe().waits_until, now() + spec.start_timeout);
}

TEST_F(MembershipViewTest, Elastic_Need_SaysWhatThereIsAndHowLongItWaits) {
  policy::JobSpec spec;
  spec.min_workers = 2;
  spec.max_workers = 4;
  spec.start_workers = 2;
  spec.elastic.emplace();
  Membership machine(spec, now());
  machine.Apply(HostJoined{{"x", 2}, Incarnation(1)}, now());
  EXPECT_EQ(machine.Explain(), "waiting for 2 workers: none is ready, 2 are starting");
  EXPECT_EQ(machine.Describe().waits_for, Membership::Wait::kWorkers);
  EXPECT_EQ(machine.Describe().waits_until, now() + spec.elastic->elastic_timeout);
  for (const uint64_t worker : {1, 2}) {
    const WorkerKey key{WorkerId(worker), Incarnation(worker)};
    machine.Apply(JoinRequested{CallId(worker), key, Epoch(0), "10.0.0.1", 4000, true, 0}, now());
  }
  EXPECT_EQ(machine.Describe().waits_for, Membership::Wait::kNothing);
  EXPECT_EQ(machine.Describe().waits_until, absl::InfiniteFuture());
  EXPECT_EQ(machine.Explain(), "2 ranks run in world 1");
  machine.Apply(WorkerExited{WorkerId(2), 1, 0, false, false, {}, "", "", {}}, now());
  EXPECT_EQ(machine.Describe().waits_for, Membership::Wait::kMembers);
  EXPECT_EQ(machine.Describe().waits_until, now() + spec.elastic->rejoin_timeout);
}

TEST_F(MembershipViewTest, Explain_Worlds) {
  StartJob({{"a", 4}});
  EXPECT_EQ(Explain(), "4 ranks run, none has called hvd.init()");
  Join(1);
  Join(4);
  EXPECT_EQ(Explain(), "waiting for ranks 1, 2 to call hvd.init() (2 of 4)");
  EXPECT_EQ(machine().Describe().waits_for, Membership::Wait::kInit);
  EXPECT_THAT(WorkerStates(), ElementsAre("joining", "starting", "starting", "joining"));
  Join(2);
  Join(3);
  EXPECT_EQ(Explain(), "4 ranks run in world 1");
  EXPECT_EQ(JobState(), "running");
  Finish(1, 1);
  EXPECT_EQ(Explain(), "3 ranks run in world 1; 1 finished");
  EXPECT_THAT(WorkerStates(), ElementsAre("finished", "running", "running", "running"));
  FailWith(2, 1, "ValueError: boom");
  EXPECT_EQ(Explain(), "world 1 is broken: rank 1 on host a failed: ValueError: boom");
}

TEST_F(MembershipViewTest, Explain_AllFinished) {
  RunJob({{"a", 2}});
  Finish(1, 1);
  Finish(2, 1);
  Exit(2, 0);
  EXPECT_EQ(Explain(), "all ranks finished world 1; waiting for rank 0 to exit");
}

TEST_F(MembershipViewTest, Explain_WithoutHorovod) {
  StartJob({{"a", 2}});
  Exit(1, 0);
  EXPECT_EQ(Explain(), "1 rank runs, none has called hvd.init(); 1 exited with code 0");
}

TEST_F(MembershipViewTest, Explain_Verdicts) {
  RunJob({{"a", 2}});
  Exit(1, 3);
  EXPECT_EQ(Explain(), "rank 0 on host a failed: exit code 3; waiting for rank 1 to exit");
  EXPECT_EQ(JobState(), "failed");
  Kill(2, 15);
  EXPECT_EQ(Explain(), "rank 0 on host a failed: exit code 3");
  EXPECT_THAT(WorkerStates(), ElementsAre("failed", "failed"));
}

TEST_F(MembershipViewTest, Describe_Done) {
  RunJob({{"a", 1}, {"b", 1}});
  for (int worker : {1, 2}) {
    Finish(worker, 1);
    Exit(worker, 0);
  }
  const Membership::View view = machine().Describe();
  EXPECT_EQ(view.state, lifecycle::JobState::kDone);
  EXPECT_EQ(view.epoch, Epoch(1));
  ASSERT_THAT(view.hosts, SizeIs(2));
  EXPECT_EQ(view.hosts[1].host.host, "b");
  EXPECT_EQ(view.hosts[1].workers[0].id, WorkerId(2));
  EXPECT_EQ(view.hosts[1].workers[0].rank, 1);
  EXPECT_THAT(WorkerStates(), ElementsAre("finished", "finished"));
}

// The job may end before another world forms.
TEST_F(MembershipViewTest, CheckpointOfABrokenWorld_IsKnown) {
  spec().elastic.emplace();
  RunJob({{"a", 2}});
  Kill(2, 9);
  ProgressReported written{CallId(100), {WorkerId(1), Incarnation(100)}, Epoch(1), CommitId(1, 8)};
  written.checkpoints.emplace().commit = CommitId(1, 8);
  Apply(written);
  EXPECT_EQ(StatusOf(100).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(machine().Describe().checkpoint, 8u);
}

// A rank that led an earlier world may still write what it committed there.
TEST_F(MembershipViewTest, CheckpointOfABrokenWorld_OfAnotherRank_IsNotTheNewest) {
  spec().elastic.emplace();
  RunJob({{"a", 3}});
  Kill(3, 9);
  const auto report = [&](int worker, uint64_t commit) {
    ProgressReported written{CallId(100 + worker),
                             {WorkerId(worker), Incarnation(100 * worker)},
                             Epoch(1),
                             CommitId(1, commit)};
    written.checkpoints.emplace().commit = CommitId(1, commit);
    Apply(written);
  };
  report(1, 8);
  report(2, 4);
  EXPECT_EQ(machine().Describe().checkpoint, 8u);
}

}  // namespace
}  // namespace hvd::rendezvous::membership
