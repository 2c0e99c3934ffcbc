// Tests of the agent in elastic jobs.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/testing/agent_fixture.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

class ElasticAgentTest : public AgentTest {
 protected:
  ElasticAgentTest() {
    welcome_.set_elastic(true);
    welcome_.set_job_id("job");
    welcome_.set_reattach_ms(600000);
    OfferHolder();
  }
};

size_t CountOf(const char* directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST_F(ElasticAgentTest, Environment_Elastic_SaysSo) {
  StartWorker("echo $HOROVOD_ELASTIC");
  EXPECT_EQ(NextLine(), "1\n");
}

TEST_F(AgentTest, Environment_Static_SaysNothing) {
  (*bootstrap_.mutable_command()->mutable_environment())["HOROVOD_ELASTIC"] = "1";
  StartWorker("echo =$HOROVOD_ELASTIC=");
  EXPECT_EQ(NextLine(), "==\n");
}

// A static job is not told that a worker is dying.
TEST_F(AgentTest, Replaced_ByAnotherProgramForLong_IsKilledAndSaysWhy) {
  settings_.check_interval = absl::Milliseconds(1);
  OfferHolder();
  StartWorker("$HOLDER exec; exit 1");
  EXPECT_NE(AwaitExited().killed_for().find("another program (exec)"), std::string::npos);
}

TEST_F(ElasticAgentTest, Commits_NextWorkerOfASlot_FindsThoseOfTheOneBefore) {
  StartWorker("$HOLDER arena");
  const std::string first = NextLine();
  SendStart(2, /*slot=*/1);
  const std::string other = NextLine();
  SendStart(3, /*slot=*/0);
  EXPECT_NE(first, other);
  EXPECT_EQ(NextLine(), first);
}

TEST_F(ElasticAgentTest, Commits_OfAnySlot_AreReportedBeforeADeathAndGivenToEveryWorker) {
  StartWorker("$HOLDER commit=7; exec sleep 1000");
  const pid_t first = NextPid();
  SendStart(2, /*slot=*/1);
  const pid_t second = NextPid();
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  kill(second, SIGKILL);
  EXPECT_EQ(daemon_.NextMessage().left().commit(), 7u);
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 2u);
  kill(first, SIGKILL);  // nothing new: the daemon knows of commit 7
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 1u);
  daemon_.Close(absl::UnavailableError("connection reset"));
  EXPECT_EQ(daemon_.AwaitHello(2).commit(), 7u);
}

TEST_F(ElasticAgentTest, Commits_NewestIsAskedFor_ComesFromAnotherSlot) {
  StartWorker("test $HOROVOD_RANK = 1 && exec $HOLDER newest; $HOLDER commit=9; exec sleep 1000");
  NextPid();
  SendStart(2, /*slot=*/1);
  EXPECT_EQ(NextLine(), "newest 9\n");
}

TEST_F(ElasticAgentTest, Dying_HolderIsKilled_IsReportedBeforeTheWorkersEnd) {
  StartWorker("$HOLDER; exec sleep 1000");
  kill(NextPid(), SIGKILL);
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 1u);
  SendStop(1, 0);
  EXPECT_EQ(AwaitExited().worker_id(), 1u);
}

TEST_F(ElasticAgentTest, LaterAsker_TheFirstLives_TakesNothingFromIt) {
  const std::string fifo = testing::TempDir() + "/agent_elastic_test_fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  StartWorker(absl::StrCat("$HOLDER & read go <", fifo, "; $HOLDER answer; exec sleep 1000"));
  const pid_t first = NextPid();
  std::ofstream(fifo) << "go\n";
  const std::string later = NextLine();
  unlink(fifo.c_str());
  EXPECT_NE(later.find("secret node7"), std::string::npos) << later;
  EXPECT_NE(later.find("page 0 arena 1 stack 0"), std::string::npos) << later;
  kill(first, SIGKILL);
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 1u);
  SendStop(1, 0);
  EXPECT_EQ(AwaitExited().worker_id(), 1u);
}

TEST_F(ElasticAgentTest, LaterAsker_TheFirstHasEnded_Counts) {
  StartWorker("$HOLDER leave; $HOLDER; exec sleep 1000");
  NextPid();
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 1u);
  kill(NextPid(), SIGKILL);
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 1u);
  SendStop(1, 0);
  EXPECT_EQ(AwaitExited().worker_id(), 1u);
}

TEST_F(ElasticAgentTest, Workers_FiftyOneAfterTheOther_LeaveNeitherThreadNorDescriptor) {
  StartWorker("$HOLDER leave");
  size_t descriptors = 0, threads = 0;
  for (uint64_t id = 1; id <= 51; ++id) {
    if (id > 1) SendStart(id);
    EXPECT_GT(NextPid(), 0);
    for (pb::AgentMessage message; message.exited().worker_id() != id;) {
      message = daemon_.NextMessage();
    }
    if (id == 1) {
      descriptors = CountOf("/proc/self/fd");
      threads = CountOf("/proc/self/task");
    }
  }
  // The agent may be at work at this moment.
  EXPECT_LT(CountOf("/proc/self/fd"), descriptors + 10);
  EXPECT_LT(CountOf("/proc/self/task"), threads + 10);
}

TEST_F(ElasticAgentTest, Reattach_LinkLost_WorkersContinueAndAllIsReportedAgain) {
  StartWorker("test $HOROVOD_RANK = 1 && exit 3; echo $$; exec sleep 1000");
  const pid_t worker = NextPid();
  SendStart(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  EXPECT_EQ(AwaitExited().worker_id(), 2u);
  const uint64_t incarnation = daemon_.AwaitHello(1).incarnation();

  daemon_.Close(absl::UnavailableError("connection reset"));
  const pb::AgentHello again = daemon_.AwaitHello(2);
  EXPECT_EQ(again.incarnation(), incarnation);
  EXPECT_EQ(std::vector<uint64_t>(again.known_workers().begin(), again.known_workers().end()),
            (std::vector<uint64_t>{1, 2}));
  const pb::WorkerStarted started = daemon_.NextMessage().started();
  EXPECT_EQ(started.worker_id(), 1u);
  EXPECT_EQ(started.pid(), worker);
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.worker_id(), 2u);
  EXPECT_EQ(exited.exit_code(), 3);
  EXPECT_FALSE(IsGone(worker));

  SendWelcome();
  for (const uint64_t id : {1, 2}) SendStart(id);  // repeated requests, which are ignored
  SendStart(4);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 4u);
  SendEnd();
  while (!IsGone(worker)) AwaitExited();
  EXPECT_EQ(Join(), 0);
}

TEST_F(ElasticAgentTest, Reattach_WorkerEndedInBetween_IsReported) {
  StartWorker("echo $$; exec sleep 1000");
  const pid_t worker = NextPid();
  daemon_.Close(absl::UnavailableError("connection reset"));
  kill(worker, SIGKILL);
  for (;;) {
    const pb::AgentMessage message = daemon_.NextMessage();
    if (!message.has_exited()) continue;
    EXPECT_EQ(message.exited().worker_id(), 1u);
    EXPECT_EQ(message.exited().signal(), SIGKILL);
    break;
  }
}

TEST_F(ElasticAgentTest, Reattach_DaemonStaysAway_LeavesNothing) {
  welcome_.set_reattach_ms(100);
  StartWorker("trap '' TERM HUP; echo $$; while :; do sleep 1000; done");
  const pid_t worker = NextPid();
  daemon_.Close(absl::UnavailableError("connection reset"));
  EXPECT_EQ(Join(), 1);
  EXPECT_TRUE(IsGone(worker));
}

TEST_F(ElasticAgentTest, Reattach_InputCloses_LeavesNothing) {
  StartWorker("echo $$; exec sleep 1000");
  const pid_t worker = NextPid();
  daemon_.Close(absl::UnavailableError("connection reset"));
  input_.write.reset();
  EXPECT_EQ(Join(), 1);
  EXPECT_TRUE(IsGone(worker));
}

TEST_F(ElasticAgentTest, Sigterm_First_AsksForADrain) {
  settings_.drain_grace = absl::Seconds(20);
  StartWorker("echo $$; exec sleep 1000");
  const pid_t worker = NextPid();
  kill(getpid(), SIGTERM);
  EXPECT_EQ(daemon_.NextMessage().draining().grace_ms(), 20000u);
  EXPECT_FALSE(IsGone(worker));
  daemon_.Close(absl::UnavailableError("connection reset"));
  daemon_.AwaitHello(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 1u);
  EXPECT_EQ(daemon_.NextMessage().draining().grace_ms(), 20000u);
  SendEnd();
  EXPECT_EQ(Join(), 0);
  EXPECT_TRUE(IsGone(worker));
}

TEST_F(ElasticAgentTest, Sigterm_Second_AsksForAHurriedDrainAndTheThirdEndsAtOnce) {
  StartWorker("trap '' TERM; echo $$; while :; do sleep 1000; done");
  const pid_t worker = NextPid();
  kill(getpid(), SIGTERM);
  EXPECT_FALSE(daemon_.NextMessage().draining().at_once());
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(daemon_.NextMessage().draining().at_once());
  EXPECT_FALSE(IsGone(worker));
  kill(getpid(), SIGTERM);
  EXPECT_EQ(Join(), 128 + SIGTERM);
  EXPECT_TRUE(IsGone(worker));
}

// A shell and the kernel may each send one when a terminal closes.
TEST_F(ElasticAgentTest, Sighup_Second_AsksForNoHaste) {
  StartWorker("trap '' TERM; echo $$; while :; do sleep 1000; done");
  const pid_t worker = NextPid();
  kill(getpid(), SIGHUP);
  EXPECT_FALSE(daemon_.NextMessage().draining().at_once());
  kill(getpid(), SIGHUP);
  kill(getpid(), SIGTERM);  // the second request that counts
  EXPECT_TRUE(daemon_.NextMessage().draining().at_once());
  EXPECT_FALSE(IsGone(worker));
  kill(getpid(), SIGTERM);
  EXPECT_EQ(Join(), 128 + SIGTERM);
}

TEST_F(ElasticAgentTest, Sigterm_DaemonDoesNotEndTheDrain_EndsAfterItsGrace) {
  settings_.drain_margin = absl::Milliseconds(10);
  welcome_.set_drain_grace_ms(10);
  StartWorker("trap '' TERM; echo $$; while :; do sleep 1000; done");
  const pid_t worker = NextPid();
  kill(getpid(), SIGTERM);
  EXPECT_EQ(daemon_.NextMessage().draining().grace_ms(), 0u);
  EXPECT_EQ(Join(), 128 + SIGTERM);
  EXPECT_TRUE(IsGone(worker));
}

TEST_F(ElasticAgentTest, Sigint_EndsAtOnce) {
  StartWorker("echo $$; exec sleep 1000");
  const pid_t worker = NextPid();
  kill(getpid(), SIGINT);
  EXPECT_EQ(Join(), 128 + SIGINT);
  EXPECT_TRUE(IsGone(worker));
}

TEST_F(ElasticAgentTest, Stopped_ForLong_IsKilledAndSaysWhy) {
  settings_.check_interval = absl::Milliseconds(1);
  StartWorker("echo last words >&2; kill -STOP $$");
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.signal(), SIGKILL);
  EXPECT_EQ(exited.killed_for(), "it was stopped (SIGSTOP) for 10 s");
  ASSERT_EQ(exited.stderr_tail_size(), 1);
  EXPECT_EQ(exited.stderr_tail(0), "last words");
}

// Both are checked at the same times, and the one that was lost first lives when the other has had
// its time.
TEST_F(ElasticAgentTest, Replaced_AfterShutdown_IsNotKilled) {
  settings_.check_interval = absl::Milliseconds(1);
  StartWorker("test $HOROVOD_RANK = 1 && exec $HOLDER exec; $HOLDER rest,exec; exit 1");
  const pid_t rests = NextPid();
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 1u);
  SendStart(2, /*slot=*/1);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  EXPECT_EQ(daemon_.NextMessage().dying().worker_id(), 2u);
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.worker_id(), 2u);
  EXPECT_EQ(exited.signal(), SIGKILL);
  EXPECT_EQ(exited.killed_for(),
            "it executed another program (exec) without hvd.shutdown(), and no hvd.init() followed "
            "in 60 s; call hvd.shutdown() before exec, or start the program as a child");
  EXPECT_FALSE(IsGone(rests));
  SendStop(1, 0);
  EXPECT_EQ(AwaitExited().killed_for(), "");
}

TEST_F(ElasticAgentTest, Stopped_ProcessThatAskedBelowAShell_IsKilled) {
  settings_.check_interval = absl::Milliseconds(10);
  StartWorker("$HOLDER; exit 1");
  const pid_t holder = NextPid();
  kill(holder, SIGSTOP);
  for (pb::AgentMessage message; !message.has_exited(); message = daemon_.NextMessage()) {
  }
  SendEnd();
  EXPECT_EQ(Join(), 0);
  EXPECT_TRUE(IsGone(holder));
}

}  // namespace
}  // namespace hvd::agent
