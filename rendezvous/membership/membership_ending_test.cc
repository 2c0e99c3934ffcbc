#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/membership_fixture.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using MembershipEndingTest = MembershipFixture;

TEST_F(MembershipEndingTest, AllFinishedAndExitedWithZero_Success) {
  RunJob({{"a", 1}, {"b", 1}});
  Finish(1, 1);
  EXPECT_THAT(Exit(1, 0), IsEmpty());
  Finish(2, 1);
  const Effects effects = Exit(2, 0);
  EXPECT_THAT(Only<EndJobEffect>(effects), SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<JobFinished>(effects.back()));
  EXPECT_TRUE(verdict()->success);
  EXPECT_EQ(verdict()->exit_code, 0);
  EXPECT_EQ(verdict()->summary, "2 ranks finished");
}

TEST_F(MembershipEndingTest, CommandWithoutHorovod_Success) {
  StartJob({{"a", 2}});
  Exit(1, 0);
  Exit(2, 0);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_TRUE(verdict()->success);
  EXPECT_EQ(verdict()->summary, "2 workers exited with code 0 without hvd.init()");
}

TEST_F(MembershipEndingTest, ZeroWithoutFinishing_Failure) {
  RunJob({{"a", 2}});
  Exit(2, 0);
  Kill(1, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_FALSE(verdict()->success);
  EXPECT_EQ(verdict()->exit_code, 1);
  EXPECT_THAT(verdict()->summary, HasSubstr("rank 1 on host a exited with code 0 without"));
}

TEST_F(MembershipEndingTest, FinishedOnlyAnEarlierEpoch_Failure) {
  RunJob({{"a", 1}});
  Finish(1, 1);
  Join(1, 1);
  Exit(1, 0);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_FALSE(verdict()->success);
}

TEST_F(MembershipEndingTest, FailingExit_StopsTheOthersAtOnce) {
  RunJob({{"a", 2}, {"b", 2}});
  Effects effects = Exit(4, 3);
  const auto stops = Only<StopWorkersEffect>(effects);
  ASSERT_THAT(stops, SizeIs(2));
  EXPECT_THAT(stops[0].workers, ElementsAre(WorkerId(1), WorkerId(2)));
  EXPECT_THAT(stops[1].workers, ElementsAre(WorkerId(3)));
  EXPECT_EQ(stops[1].agent, Incarnation('b'));
  EXPECT_EQ(stops[1].grace, absl::Seconds(1));
  EXPECT_THAT(Only<EndJobEffect>(effects), IsEmpty());
  effects = Kill(3, SIGTERM);
  ASSERT_THAT(Only<EndJobEffect>(effects), SizeIs(1)) << "all of host b have exited";
  EXPECT_EQ(Only<EndJobEffect>(effects)[0].host, "b");
  EXPECT_FALSE(verdict().has_value());
  Kill(1, SIGTERM);
  Exit(2, 5);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->exit_code, 3);
  EXPECT_EQ(verdict()->rank, 3);
  EXPECT_EQ(verdict()->consequences, 0) << "those were stopped by us";
}

TEST_F(MembershipEndingTest, Signal_IsTheExitCode) {
  RunJob({{"a", 1}});
  Kill(1, SIGSEGV);
  EXPECT_EQ(verdict()->exit_code, 139);
  EXPECT_EQ(verdict()->exit_meaning, "killed by signal 11 (SIGSEGV)");
}

TEST_F(MembershipEndingTest, StartError_IsAFailure) {
  StartJob({{"a", 1}});
  WorkerExited exited;
  exited.worker = WorkerId(1);
  exited.start_error = "fork: no memory";
  Apply(exited);
  EXPECT_EQ(verdict()->exit_code, 1);
  EXPECT_EQ(verdict()->summary, "rank 0 on host a failed: could not be started: fork: no memory");
}

TEST_F(MembershipEndingTest, Consequence_WaitsForItsCause) {
  RunJob({{"a", 1}, {"b", 1}, {"c", 1}});
  const int watch = Watch(3, 1);
  FailWith(1, 1, "HorovodInternalError: lost rank 1", true);
  Exit(1, 1);
  EXPECT_EQ(WatchOf(watch).change, EpochChange::kBroken) << "the epoch is broken, the job not over";
  EXPECT_EQ(machine().NextDeadline(), now() + absl::Milliseconds(500));
  EXPECT_THAT(machine().Explain(), HasSubstr("waiting for its cause"));
  Advance(absl::Milliseconds(499));
  EXPECT_EQ(machine().Describe().state, lifecycle::JobState::kRunning);
  EXPECT_THAT(Only<StopWorkersEffect>(Kill(2, SIGKILL)), SizeIs(1));
  Kill(3, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 1);
  EXPECT_EQ(verdict()->exit_code, 137);
  EXPECT_EQ(verdict()->consequences, 1);
}

TEST_F(MembershipEndingTest, Consequence_NoCauseShows_DecidesWithWhatIsKnown) {
  RunJob({{"a", 2}});
  FailWith(1, 1, "HorovodInternalError: timed out", true);
  Exit(1, 4);
  EXPECT_THAT(Only<StopWorkersEffect>(Advance(absl::Milliseconds(500))), SizeIs(1));
  Kill(2, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 0);
  EXPECT_EQ(verdict()->exit_code, 4);
}

TEST_F(MembershipEndingTest, CulpritThatEndsAfterTheVerdict_CompletesIt) {
  RunJob({{"a", 2}});
  FailWith(1, 1, "ValueError: boom", false);
  FailWith(2, 1, "lost a peer", true);
  Exit(2, 1);
  EXPECT_THAT(Only<StopWorkersEffect>(Advance(absl::Milliseconds(500))), SizeIs(1));
  WorkerExited exited;
  exited.worker = WorkerId(1);
  exited.exit_code = 7;
  exited.stderr_tail = {"last words"};
  Apply(exited);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->summary, "rank 0 on host a failed: ValueError: boom (exit code 7)");
  EXPECT_EQ(verdict()->exit_code, 7);
  EXPECT_EQ(verdict()->consequences, 1);
  EXPECT_THAT(verdict()->stderr_tail, ElementsAre("last words"));
}

TEST_F(MembershipEndingTest, CulpritThatHadToBeStopped_KeepsItsLastWords) {
  RunJob({{"a", 2}});
  FailWith(1, 1, "ValueError: boom", false);
  FailWith(2, 1, "lost a peer", true);
  Exit(2, 1);
  Advance(absl::Milliseconds(500));
  WorkerExited exited;
  exited.worker = WorkerId(1);
  exited.signal = SIGTERM;
  exited.stderr_tail = {"last words"};
  Apply(exited);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->summary, "rank 0 on host a failed: ValueError: boom (still running)");
  EXPECT_EQ(verdict()->exit_code, 1);
  EXPECT_THAT(verdict()->stderr_tail, ElementsAre("last words"));
}

TEST_F(MembershipEndingTest, SecondConsequence_DoesNotExtendTheWait) {
  RunJob({{"a", 3}});
  for (int worker : {1, 2}) {
    FailWith(worker, 1, "lost a peer", true);
    Exit(worker, 1);
    EXPECT_EQ(machine().NextDeadline(), absl::UnixEpoch() + absl::Milliseconds(500));
    Advance(absl::Milliseconds(100));
  }
}

TEST_F(MembershipEndingTest, ConsequenceAfterFinishing_BreaksTheEpoch) {
  RunJob({{"a", 2}});
  const int watch = Watch(2, 1);
  Finish(1, 1);
  FailWith(1, 1, "lost a peer", true);
  EXPECT_TRUE(IsParked(watch)) << "it had left in good order";
  Exit(1, 1);
  EXPECT_EQ(WatchOf(watch).reason, "rank 0 on host a has exited: exit code 1");
}

TEST_F(MembershipEndingTest, HostLostWhileACauseIsAwaited_ItsCallsEndAtOnce) {
  StartJob({{"a", 1}, {"b", 1}});
  const int join = Join(2);
  FailWith(1, 0, "ValueError: boom");
  Lose("b", "cut");
  EXPECT_THAT(StatusOf(join).message(), HasSubstr("host b was lost: cut"));
  Exit(1, 5);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 0);
  EXPECT_EQ(verdict()->exit_code, 5);
}

TEST_F(MembershipEndingTest, JoinWhileACauseIsAwaited_DoesNotHideIt) {
  RunJob({{"a", 3}});
  for (int worker : {1, 2}) Finish(worker, 1);
  Exit(1, 0);
  FailWith(3, 1, "lost a peer", true);
  Exit(3, 4);
  Join(2, 1);
  Advance(absl::Milliseconds(500));
  Kill(2, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 2);
  EXPECT_EQ(verdict()->exit_code, 4);
}

TEST_F(MembershipEndingTest, RecoveredException_IsNotALaterCause) {
  RunJob({{"a", 2}});
  FailWith(1, 1, "HorovodInternalError", false);
  Join(1, 1);
  Join(2, 1);
  Exit(2, 3);
  Kill(1, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 1);
  EXPECT_EQ(verdict()->consequences, 0);
}

TEST_F(MembershipEndingTest, Consequences_AllGone_NeedNotWait) {
  RunJob({{"a", 2}});
  FailWith(1, 1, "lost rank 1", true);
  FailWith(2, 1, "lost rank 0", true);
  Exit(2, 1);
  Exit(1, 1);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 0) << "the first that said so";
  EXPECT_EQ(verdict()->consequences, 1);
}

TEST_F(MembershipEndingTest, WordBeforeTheExitOfOthers_IsTheCause) {
  RunJob({{"a", 3}});
  FailWith(2, 1, "ValueError: boom");
  FailWith(1, 1, "lost rank 1", true);
  Exit(1, 1);
  EXPECT_FALSE(verdict().has_value());
  Exit(2, 7);
  Kill(3, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 1);
  EXPECT_EQ(verdict()->exit_code, 7);
  EXPECT_EQ(verdict()->exception, "ValueError: boom");
}

TEST_F(MembershipEndingTest, CaughtException_FinishedIsTheLastWord) {
  RunJob({{"a", 2}});
  FailWith(1, 1, "ValueError: caught after all");
  Finish(1, 1);
  Exit(1, 0);
  Finish(2, 1);
  Exit(2, 3);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->rank, 1);
}

TEST_F(MembershipEndingTest, LeftAmidTheOthersWork_IsTheCause) {
  RunJob({{"a", 3}});
  Finish(2, 1);
  FailWith(1, 1, "Rank 1 left first", true);
  FailWith(3, 1, "Rank 1 left first", true);
  Exit(1, 1);
  Exit(3, 1);
  Exit(2, 0);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_FALSE(verdict()->success);
  EXPECT_EQ(verdict()->rank, 1);
  EXPECT_EQ(verdict()->exit_code, 1);
  EXPECT_EQ(verdict()->exit_meaning, "exit code 0");
  EXPECT_EQ(verdict()->consequences, 2);
}

TEST_F(MembershipEndingTest, ExitBeforeInit_OthersWait_Failure) {
  StartJob({{"a", 1}, {"b", 1}});
  Join(1);
  WorkerExited exited;
  exited.worker = WorkerId(2);
  exited.stderr_tail = {"usage: ..."};
  Apply(exited);
  Kill(1, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->summary,
            "rank 1 on host b exited with code 0 before it called hvd.init(), while rank 0 waits "
            "for it");
  EXPECT_EQ(verdict()->exit_code, 1);
  EXPECT_EQ(verdict()->rank, 1);
  EXPECT_THAT(verdict()->stderr_tail, ElementsAre("usage: ..."));
}

TEST_F(MembershipEndingTest, InitAfterAnotherExited_Failure) {
  StartJob({{"a", 2}});
  Exit(2, 0);
  const int join = Join(1);
  EXPECT_THAT(StatusOf(join).message(), HasSubstr("rank 1 on host a exited with code 0 before"));
}

TEST_F(MembershipEndingTest, SecondInitAfterAnotherExited_Failure) {
  RunJob({{"a", 3}});
  for (int worker : {1, 2, 3}) Finish(worker, 1);
  Exit(2, 0);
  Join(1, 1);
  Kill(1, SIGTERM);
  Kill(3, SIGTERM);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->summary,
            "rank 1 on host a has exited with code 0, but rank 0 has called hvd.init() again and "
            "would wait for it forever");
}

TEST_F(MembershipEndingTest, StopRequested_StopsAllWithItsGrace) {
  RunJob({{"a", 1}, {"b", 1}});
  const auto stops = Only<StopWorkersEffect>(Apply(StopRequested{"Ctrl-C", 130, absl::Seconds(5)}));
  ASSERT_THAT(stops, SizeIs(2));
  EXPECT_EQ(stops[0].grace, absl::Seconds(5));
  EXPECT_THAT(Apply(StopRequested{"again", 1, absl::Seconds(5)}), IsEmpty());
  const auto harder = Only<StopWorkersEffect>(Apply(StopRequested{"", 1, absl::ZeroDuration()}));
  ASSERT_THAT(harder, SizeIs(2));
  EXPECT_EQ(harder[0].grace, absl::ZeroDuration());
  EXPECT_EQ(machine().NextDeadline(), now() + absl::Seconds(5));
  Kill(1, SIGKILL);
  EXPECT_THAT(Only<EndJobEffect>(Kill(2, SIGKILL)), SizeIs(1));
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->exit_code, 130);
  EXPECT_EQ(verdict()->summary, "stopped: Ctrl-C");
  EXPECT_THAT(Apply(StopRequested{"late", 1, absl::ZeroDuration()}), IsEmpty());
}

// A script may save what it has, with the others, before it ends.
TEST_F(MembershipEndingTest, StopRequested_WorldIsKept_UntilTheFirstWorkerEnds) {
  RunJob({{"a", 2}});
  const int first = Watch(1, 1);
  const int second = Watch(2, 1);
  EXPECT_THAT(Only<StopWorkersEffect>(
                  Apply(StopRequested{"SIGTERM", 143, absl::Seconds(5), /*keeps_world=*/true})),
              SizeIs(1));
  EXPECT_TRUE(IsParked(first));
  EXPECT_TRUE(IsParked(second));
  Exit(1, 0);
  EXPECT_EQ(WatchOf(second).change, EpochChange::kJobOver);
  Exit(2, 0);
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->exit_code, 143);
}

TEST_F(MembershipEndingTest, StopRequested_WithoutAGrace_BreaksTheWorld) {
  RunJob({{"a", 2}});
  const int watch = Watch(1, 1);
  Apply(StopRequested{"killed", 143, absl::ZeroDuration(), /*keeps_world=*/true});
  EXPECT_EQ(WatchOf(watch).change, EpochChange::kJobOver);
}

TEST_F(MembershipEndingTest, StopRequested_BeforeAnythingStarted_EndsAtOnce) {
  NewJob({{"a", 1}, {"b", 1}});
  Attach("a", 1);
  EXPECT_THAT(Only<EndJobEffect>(Apply(StopRequested{"Ctrl-C", 130, absl::Seconds(5)})), SizeIs(1));
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->exit_code, 130);
}

TEST_F(MembershipEndingTest, StopRequested_AfterAFailure_OnlyShortensTheGrace) {
  RunJob({{"a", 2}});
  Exit(1, 3);
  EXPECT_THAT(Only<StopWorkersEffect>(Apply(StopRequested{"Ctrl-C", 130, absl::ZeroDuration()})),
              SizeIs(1));
  Kill(2, SIGKILL);
  EXPECT_EQ(verdict()->exit_code, 3);
}

TEST_F(MembershipEndingTest, WorkerThatDoesNotGo_IsNamed) {
  RunJob({{"a", 2}, {"b", 1}});
  Exit(1, 3);
  Kill(2, SIGTERM);
  EXPECT_EQ(machine().NextDeadline(), now() + absl::Seconds(6));
  EXPECT_THAT(machine().Explain(), HasSubstr("waiting for rank 2 to exit"));
  const auto ends = Only<EndJobEffect>(Advance(absl::Seconds(6)));
  ASSERT_THAT(ends, SizeIs(1)) << "host a has its own already";
  EXPECT_EQ(ends[0].host, "b");
  ASSERT_TRUE(verdict().has_value());
  EXPECT_EQ(verdict()->exit_code, 3);
  EXPECT_EQ(verdict()->summary,
            "rank 0 on host a failed: exit code 3; no report that rank 2 on host b exited");
}

TEST_F(MembershipEndingTest, DuplicatesAndUnknownWorkers_AreIgnored) {
  RunJob({{"a", 2}});
  EXPECT_THAT(Exit(9, 1), IsEmpty());
  Finish(1, 1);
  Exit(1, 0);
  EXPECT_THAT(Exit(1, 3), IsEmpty()) << "it has exited once already";
  Finish(2, 1);
  Exit(2, 0);
  EXPECT_TRUE(verdict()->success);
  EXPECT_THAT(Exit(2, 3), IsEmpty());
  EXPECT_THAT(Lose("a"), IsEmpty());
}

TEST_F(MembershipEndingTest, TwoScriptsInARow_BothMustFinish) {
  RunJob({{"a", 2}});
  for (int worker : {1, 2}) Finish(worker, 1);
  Join(1, 0, 11);
  Join(2, 0, 12);
  EXPECT_EQ(machine().Describe().epoch, Epoch(2));
  Finish(1, 2, 11);
  Finish(2, 2, 12);
  Exit(1, 0);
  Exit(2, 0);
  EXPECT_TRUE(verdict()->success);
}

}  // namespace
}  // namespace hvd::rendezvous::membership
