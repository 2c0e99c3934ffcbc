// Tests of what an agent does in a rehearsal, and of what it refuses in any other job.
#include <csignal>
#include <string>

#include "agent/testing/agent_fixture.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

class AgentFaultsTest : public AgentTest {
 protected:
  AgentFaultsTest() {
    welcome_.set_elastic(true);
    welcome_.set_job_id("job");
  }

  pb::FaultDone Harm(pb::Fault::Kind kind, uint64_t worker, uint32_t duration_ms = 0) {
    pb::AgentCommand command;
    command.mutable_fault()->set_id(9);
    command.mutable_fault()->set_kind(kind);
    command.mutable_fault()->set_worker_id(worker);
    command.mutable_fault()->set_duration_ms(duration_ms);
    daemon_.Send(command);
    const pb::AgentMessage answer = daemon_.NextMessage();
    EXPECT_TRUE(answer.has_fault_done()) << answer.ShortDebugString();
    EXPECT_EQ(answer.fault_done().fault_id(), 9U);
    return answer.fault_done();
  }
};

// Whoever has the job's token may send what the daemon sends.
TEST_F(AgentFaultsTest, NoRehearsal_NothingIsDone) {
  StartWorker("echo $$; exec sleep 1000");
  const pid_t pid = NextPid();
  for (int kind = pb::Fault::Kind_MIN; kind <= pb::Fault::Kind_MAX; ++kind) {
    EXPECT_EQ(Harm(static_cast<pb::Fault::Kind>(kind), 1).problem(), "this job is no rehearsal");
  }
  EXPECT_EQ(kill(pid, 0), 0);
}

TEST_F(AgentFaultsTest, Kill_CountsAsAnyOther) {
  bootstrap_.set_is_rehearsal(true);
  StartWorker("exec sleep 1000");
  EXPECT_EQ(Harm(pb::Fault::KILL, 1).problem(), "");
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.signal(), SIGKILL);
  EXPECT_EQ(exited.killed_for(), "") << "not by its agent";
}

TEST_F(AgentFaultsTest, Stop_WithATime_Continues) {
  bootstrap_.set_is_rehearsal(true);
  StartWorker("echo begins; read line < /proc/$$/comm; sleep 0.01; echo goes on; exec sleep 1000");
  EXPECT_EQ(NextLine(), "begins\n");
  EXPECT_EQ(Harm(pb::Fault::STOP, 1, /*duration_ms=*/50).problem(), "");
  EXPECT_EQ(NextLine(), "goes on\n");
}

TEST_F(AgentFaultsTest, WhatOnlyAWorkerCanDo_NeedsOneThatHasBegun) {
  bootstrap_.set_is_rehearsal(true);
  StartWorker("exec sleep 1000");
  EXPECT_EQ(Harm(pb::Fault::EXCEPTION, 1).problem(), "it has not called hvd.init()");
  EXPECT_EQ(Harm(pb::Fault::EXCEPTION, 2).problem(), "its process has ended");
}

TEST_F(AgentFaultsTest, Preemption_AsksForADrain) {
  bootstrap_.set_is_rehearsal(true);
  StartWorker("exec sleep 1000");
  pb::AgentCommand command;
  command.mutable_fault()->set_id(9);
  command.mutable_fault()->set_kind(pb::Fault::PREEMPTION);
  command.mutable_fault()->set_duration_ms(20000);
  daemon_.Send(command);
  EXPECT_EQ(daemon_.NextMessage().draining().grace_ms(), 20000U);
  EXPECT_EQ(daemon_.NextMessage().fault_done().problem(), "");
}

}  // namespace
}  // namespace hvd::agent
