// Tests of the ways in which an agent ends.
#include <unistd.h>

#include <csignal>

#include "agent/testing/agent_fixture.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

// Each way to lose the job must end the worker and its descendants at once, whether or not they
// ignore SIGTERM.
constexpr char kStubborn[] =
    "trap '' TERM HUP; (setsid sh -c 'echo $$; exec sleep 1000' &); echo $$; "
    "while :; do sleep 1000; done";

TEST_F(AgentTest, End_InputCloses_LeavesNothing) {
  StartWorker(kStubborn);
  const pid_t first = NextPid(), second = NextPid();
  input_.write.reset();
  EXPECT_EQ(Join(), 1);
  EXPECT_TRUE(IsGone(first));
  EXPECT_TRUE(IsGone(second));
}

TEST_F(AgentTest, End_LinkLost_LeavesNothing) {
  StartWorker(kStubborn);
  const pid_t first = NextPid(), second = NextPid();
  daemon_.Close(absl::UnavailableError("connection reset"));
  EXPECT_EQ(Join(), 1);
  EXPECT_TRUE(IsGone(first));
  EXPECT_TRUE(IsGone(second));
}

TEST_F(AgentTest, End_Sigterm_LeavesNothing) {
  StartWorker(kStubborn);
  const pid_t first = NextPid(), second = NextPid();
  kill(getpid(), SIGTERM);
  EXPECT_EQ(Join(), 128 + SIGTERM);
  EXPECT_EQ(daemon_.NextMessage().leaving().reason(), "its agent got SIGTERM");
  EXPECT_TRUE(IsGone(first));
  EXPECT_TRUE(IsGone(second));
}

TEST_F(AgentTest, End_WorkersStillRun_StopsThemFirst) {
  StartWorker("echo up; exec sleep 1000");
  EXPECT_EQ(NextLine(), "up\n");
  SendEnd();
  EXPECT_EQ(AwaitExited().worker_id(), 1u);
  EXPECT_EQ(Join(), 0);
}

TEST_F(AgentTest, End_InputClosesAfterTheLastMessage_IsNormal) {
  daemon_.KeepStreams();
  StartWorker("true");
  AwaitExited();
  SendEnd();
  daemon_.AwaitFinish();
  input_.write.reset();
  EXPECT_EQ(Join(), 0);
}

}  // namespace
}  // namespace hvd::agent
