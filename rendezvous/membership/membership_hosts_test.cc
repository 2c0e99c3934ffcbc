#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/membership_fixture.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using MembershipHostsTest = MembershipFixture;

TEST_F(MembershipHostsTest, HostJoined_NothingStartsBeforeAllAreThere) {
  NewJob({{"a", 2}, {"b", 1}});
  EXPECT_THAT(Attach("b", 1), IsEmpty());
  const auto starts = Only<StartWorkerEffect>(Attach("a", 2));
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[0].worker, WorkerId(1));
  EXPECT_EQ(starts[0].host, "a") << "ranks follow the spec, not the order of coming";
  EXPECT_EQ(starts[0].agent, Incarnation('a'));
  EXPECT_EQ(starts[2].worker, WorkerId(3));
  EXPECT_EQ(starts[2].host, "b");
  EXPECT_EQ(starts[2].place.rank, 2);
  EXPECT_EQ(starts[2].place.size, 3);
  EXPECT_EQ(starts[2].place.cross_rank, 1);
  EXPECT_EQ(starts[2].place.cross_size, 2);
}

TEST_F(MembershipHostsTest, HostJoined_WorkersOfAStaticJob_KnowTheStoreOfRank0sHost) {
  NewJob({{"a", 1}, {"b", 2}});
  Apply(HostJoined{{"b", 2}, Incarnation('b'), {}, "10.0.0.2:80"});
  const auto starts =
      Only<StartWorkerEffect>(Apply(HostJoined{{"a", 1}, Incarnation('a'), {}, "10.0.0.1:80"}));
  ASSERT_THAT(starts, SizeIs(3));
  for (const StartWorkerEffect& start : starts) {
    EXPECT_EQ(start.torch.store_address, "10.0.0.1:80");
    EXPECT_EQ(start.torch.group_rank, start.host == "a" ? 0 : 1);
    EXPECT_EQ(start.torch.groups, 2);
  }
  EXPECT_EQ(starts[2].place.cross_rank, 0) << "unlike its group's rank";
}

TEST_F(MembershipHostsTest, HostJoined_HostOrderIsKept_GroupsAreTheMachines) {
  spec().expected_hosts = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}};
  spec().min_workers = spec().max_workers = 5;
  spec().keep_host_order = true;
  Membership machine(spec(), now());
  for (const char* host : {"a", "b", "c", "d"}) {
    const std::string on = *host == 'a' || *host == 'c' ? "m" : "n";
    machine.Apply(HostJoined{{host, 1, on}, Incarnation(*host)}, now());
  }
  const auto starts =
      Only<StartWorkerEffect>(machine.Apply(HostJoined{{"e", 1, "m"}, Incarnation('e')}, now()));
  ASSERT_THAT(starts, SizeIs(5));
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(starts[rank].host, std::string(1, static_cast<char>('a' + rank)));
    EXPECT_EQ(starts[rank].place.rank, rank);
    EXPECT_EQ(starts[rank].place.local_rank, rank / 2);
    EXPECT_EQ(starts[rank].place.local_size, rank % 2 == 0 ? 3 : 2);
    EXPECT_EQ(starts[rank].torch.group_rank, rank % 2);
    EXPECT_EQ(starts[rank].torch.groups, 2);
  }
}

TEST_F(MembershipHostsTest, HostJoined_NoneExpected_StartsWhenThereAreEnoughSlots) {
  spec().min_workers = spec().max_workers = 3;
  spec().start_workers = 1;
  Membership machine(spec(), now());
  EXPECT_THAT(machine.Apply(HostJoined{{"y", 2}, Incarnation(1)}, now()), IsEmpty());
  const auto starts =
      Only<StartWorkerEffect>(machine.Apply(HostJoined{{"x", 2}, Incarnation(2)}, now()));
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[0].host, "y");
  EXPECT_EQ(starts[2].host, "x");
}

TEST_F(MembershipHostsTest, HostJoined_NameAttachedAlready_IsIgnored) {
  NewJob({{"a", 1}, {"b", 1}});
  Attach("a", 1);
  EXPECT_THAT(Apply(HostJoined{{"a", 1}, Incarnation(7)}), IsEmpty());
  const auto starts = Only<StartWorkerEffect>(Attach("b", 1));
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].agent, Incarnation('a'));
}

TEST_F(MembershipHostsTest, HostJoined_AllPlacesTaken_IsSentAway) {
  StartJob({{"a", 1}});
  const auto ends = Only<EndJobEffect>(Attach("z", 4));
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].agent, Incarnation('z'));
}

TEST_F(MembershipHostsTest, HostJoined_AfterTheVerdict_IsSentAway) {
  NewJob({{"a", 1}, {"b", 1}});
  Apply(StopRequested{"Ctrl-C", 130, absl::Seconds(1)});
  ASSERT_TRUE(verdict().has_value());
  EXPECT_THAT(Only<EndJobEffect>(Attach("a", 1)), SizeIs(1));
}

TEST_F(MembershipHostsTest, StartTimeout_NamesTheLateHosts) {
  NewJob({{"a", 1}, {"b", 1}, {"c", 1}});
  Attach("b", 1);
  EXPECT_EQ(machine().NextDeadline(), now() + absl::Seconds(30));
  Advance(absl::Seconds(29));
  EXPECT_FALSE(verdict().has_value());
  EXPECT_THAT(Only<EndJobEffect>(Advance(absl::Seconds(1))), SizeIs(1)) << "host b";
  ASSERT_TRUE(verdict().has_value());
  EXPECT_FALSE(verdict()->success);
  EXPECT_EQ(verdict()->exit_code, 1);
  EXPECT_EQ(verdict()->summary,
            "gave up after 30s of waiting for hosts a, c to attach (1 of 3 attached)");
  EXPECT_EQ(machine().NextDeadline(), absl::InfiniteFuture());
}

TEST_F(MembershipHostsTest, StartTimeout_LastHostComesBeforeTheTick_Starts) {
  NewJob({{"a", 1}});
  Membership& m = machine();
  const auto starts = Only<StartWorkerEffect>(
      m.Apply(HostJoined{{"a", 1}, Incarnation(1)}, now() + absl::Seconds(31)));
  EXPECT_THAT(starts, SizeIs(1));
}

TEST_F(MembershipHostsTest, HostLost_WhileForming_FailsTheJob) {
  NewJob({{"a", 1}, {"b", 1}});
  Attach("a", 1);
  Lose("a", "stream broke");
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->summary, "host a was lost: stream broke");
  EXPECT_EQ(verdict()->host, "a");
  EXPECT_EQ(verdict()->rank, -1);
  EXPECT_EQ(verdict()->exit_code, 1);
}

TEST_F(MembershipHostsTest, HostLost_NotExpected_MayBeReplaced) {
  policy::JobSpec spec;
  spec.min_workers = spec.max_workers = 2;
  Membership machine(spec, now());
  machine.Apply(HostJoined{{"x", 1}, Incarnation(1)}, now());
  EXPECT_THAT(machine.Apply(HostLost{"x", Incarnation(1), "gone"}, now()), IsEmpty());
  EXPECT_THAT(machine.Apply(HostJoined{{"y", 1}, Incarnation(2)}, now()), IsEmpty());
  const auto starts =
      Only<StartWorkerEffect>(machine.Apply(HostJoined{{"z", 1}, Incarnation(3)}, now()));
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].host, "y");
}

TEST_F(MembershipHostsTest, HostLost_WhileRunning_StopsTheOthers) {
  RunJob({{"a", 2}, {"b", 2}});
  const Effects effects = Lose("b", "stream broke");
  const auto stops = Only<StopWorkersEffect>(effects);
  ASSERT_THAT(stops, SizeIs(1));
  EXPECT_EQ(stops[0].host, "a");
  EXPECT_THAT(stops[0].workers, SizeIs(2));
  EXPECT_THAT(Only<EndJobEffect>(effects), IsEmpty());
  Kill(1, 15);
  Kill(2, 15);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->summary, "host b was lost: stream broke");
  EXPECT_EQ(verdict()->consequences, 0);
}

TEST_F(MembershipHostsTest, HostLost_OfAnotherAgent_IsIgnored) {
  RunJob({{"a", 1}});
  EXPECT_THAT(Apply(HostLost{"a", Incarnation(7), "stale"}), IsEmpty());
  EXPECT_THAT(Apply(HostLost{"nobody", Incarnation('a'), "unknown"}), IsEmpty());
}

TEST_F(MembershipHostsTest, HostLost_AfterItsWorkersFinished_CostsNothing) {
  RunJob({{"a", 1}, {"b", 1}});
  Finish(2, 1);
  Exit(2, 0);
  EXPECT_THAT(Lose("b"), IsEmpty());
  Finish(1, 1);
  Exit(1, 0);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_TRUE(verdict()->success);
}

TEST_F(MembershipHostsTest, WorkerStarted_ShowsItsPid) {
  StartJob({{"a", 1}});
  Apply(WorkerStarted{WorkerId(1), 4711});
  Apply(WorkerStarted{WorkerId(9), 1});
  EXPECT_EQ(machine().Describe().hosts[0].workers[0].pid, 4711);
}

TEST_F(MembershipHostsTest, MoreSlotsThanWorkers_OnlyTheFirstAreUsed) {
  spec().expected_hosts = {{"a", 2}, {"b", 2}};
  spec().max_workers = 2;
  Membership machine(spec(), now());
  machine.Apply(HostJoined{{"a", 2}, Incarnation(1)}, now());
  const auto starts =
      Only<StartWorkerEffect>(machine.Apply(HostJoined{{"b", 2}, Incarnation(2)}, now()));
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[1].host, "a");
  EXPECT_EQ(starts[1].place.size, 2);
}

TEST_F(MembershipHostsTest, TwoAgentsOfOneMachine_ShareItsLocalRanks) {
  NewJob({{"a", 2}, {"b", 1}});
  Apply(HostJoined{{"a", 2, "m"}, Incarnation('a')});
  const auto starts = Only<StartWorkerEffect>(Apply(HostJoined{{"b", 1, "m"}, Incarnation('b')}));
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[2].host, "b");
  EXPECT_EQ(starts[2].slot, 0) << "slots are the host's own";
  EXPECT_EQ(starts[2].place.local_rank, 2);
  EXPECT_EQ(starts[2].place.local_size, 3);
  EXPECT_EQ(starts[2].place.cross_size, 1);
}

TEST_F(MembershipHostsTest, ElasticJob_WorkersHearHowManyMayShareTheirMachine) {
  spec().elastic.emplace();
  spec().min_workers = 1;
  spec().max_workers = 5;
  spec().start_workers = 1;
  Membership machine(spec(), now());
  const auto join = [&](const char* host, int slots, uint64_t agent, const char* on) {
    return Only<StartWorkerEffect>(
        machine.Apply(HostJoined{{host, slots, on}, Incarnation(agent)}, now()));
  };
  EXPECT_EQ(join("a", 1, 1, "m").at(0).most_on_machine, 1);
  EXPECT_EQ(join("b", 1, 2, "n").at(0).most_on_machine, 1);
  EXPECT_EQ(join("c", 2, 3, "m").at(0).most_on_machine, 3);
  machine.Apply(HostDraining{"c", absl::Seconds(9), ""}, now());
  EXPECT_EQ(join("d", 1, 4, "m").at(0).most_on_machine, 2) << "c leaves";
}

TEST_F(MembershipHostsTest, ElasticJob_WorkersHearHowManyMayShareTheirHost) {
  spec().elastic.emplace();
  spec().min_workers = 1;
  spec().max_workers = 3;
  spec().start_workers = 1;
  Membership machine(spec(), now());
  const auto on_a =
      Only<StartWorkerEffect>(machine.Apply(HostJoined{{"a", 2}, Incarnation(1)}, now()));
  ASSERT_THAT(on_a, SizeIs(2));
  EXPECT_EQ(on_a[0].most_on_machine, 2);
  const auto on_b =
      Only<StartWorkerEffect>(machine.Apply(HostJoined{{"b", 4}, Incarnation(2)}, now()));
  ASSERT_THAT(on_b, SizeIs(1));
  EXPECT_EQ(on_b[0].place.local_size, 1);
  EXPECT_EQ(on_b[0].most_on_machine, 3);
}

}  // namespace
}  // namespace hvd::rendezvous::membership
