#include "agent/process/adoption.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::agent::process {
namespace {

// Adopts a process that does nothing; the test writes that process's lines and reads the agent's.
class AdoptionTest : public testing::Test {
 protected:
  AdoptionTest() {
    signal(SIGPIPE, SIG_IGN);
    os::SpawnOptions options;
    options.file = "sleep";
    options.argv = {"sleep", "1000"};
    process_.emplace(os::Process::Spawn(options).value());
    Adopt(Adoption::kLeastGrace);
  }

  void Adopt(absl::Duration least_grace) {
    adoption_.emplace(*loop_, os::OtherProcess::Open(process_->pid()).value(), to_agent_.read.get(),
                      to_process_.write.get(), least_grace);
    ASSERT_TRUE(adoption_
                    ->Watch([this] {
                      withdrawn_ = true;
                      loop_->Stop();
                    })
                    .ok());
  }
  std::unique_ptr<WorkerProcess> Start() {
    return adoption_
        ->Start({}, {{"HOROVOD_RANK", "3"}},
                {nullptr, [this] { seems_dying_ = true; },
                 [this](ProcessEnd end) {
                   end_ = std::move(end);
                   loop_->Stop();
                 }})
        .value();
  }
  void Say(const std::string& line) { ASSERT_TRUE(WriteAll(to_agent_.write.get(), line).ok()); }
  std::string NextLine() {
    std::string line;
    for (char byte = 0; byte != '\n' && ReadSome(to_process_.read.get(), &byte, 1).bytes == 1;) {
      line += byte;
    }
    return line;
  }
  // The process has ended, and is a zombie.
  void AwaitZombie() {
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WEXITED | WNOWAIT), 0);
  }
  bool IsAlive() const { return !process_->PeekExit().has_value(); }

  std::optional<os::Process> process_;
  Pipe to_agent_ = MakePipe().value(), to_process_ = MakePipe().value();
  const std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::optional<Adoption> adoption_;
  std::optional<ProcessEnd> end_;
  bool withdrawn_ = false, seems_dying_ = false;
};

TEST_F(AdoptionTest, Exit_Reported_ProcessSurvives) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  EXPECT_EQ(NextLine(), "{\"start\":{\"HOROVOD_RANK\":\"3\"}}\n");
  EXPECT_EQ(worker->pid(), process_->pid());
  EXPECT_TRUE(worker->running());
  Say("{\"exit\": 7}\n");
  loop_->Run();
  EXPECT_EQ(end_->status.exit_code, 7);
  EXPECT_EQ(end_->unknown, "");
  EXPECT_FALSE(worker->running());
  EXPECT_FALSE(seems_dying_);
  EXPECT_TRUE(IsAlive());
}

TEST_F(AdoptionTest, Start_Twice_IsRefused) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(adoption_->Start({}, {}, {}).status()));
  Say("{\"exit\": 0}\n");
  loop_->Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(adoption_->Start({}, {}, {}).status()));
}

TEST_F(AdoptionTest, ExitBeforeTheProcessEnds_TheCodeCounts) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  Say("{\"exit\": 0}\n");
  process_->Signal(SIGKILL);
  AwaitZombie();
  loop_->Run();
  EXPECT_EQ(end_->status.exit_code, 0);
  EXPECT_EQ(end_->status.signal, 0);
}

TEST_F(AdoptionTest, ProcessIsKilled_ItsParentHasNotAskedYet_TheSignalIsKnown) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  process_->Signal(SIGSEGV);
  AwaitZombie();
  loop_->Run();
  EXPECT_EQ(end_->status.signal, SIGSEGV);
  EXPECT_EQ(end_->unknown, "");
}

TEST_F(AdoptionTest, ProcessEnds_ReapedByItsParent_ReportsWhatIsKnown) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  process_->Signal(SIGKILL);
  process_.reset();
  loop_->Run();
  EXPECT_EQ(end_->status.exit_code, 1);
  EXPECT_EQ(end_->status.signal, 0);
  EXPECT_EQ(end_->unknown, "ended without reporting an exit code to its agent");
}

TEST_F(AdoptionTest, LinesEnd_TheProcessLives_IsAFailure) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  to_agent_.write.reset();
  loop_->Run();
  EXPECT_EQ(end_->status.exit_code, 1);
  EXPECT_EQ(end_->unknown, "closed the connection to its agent without reporting an exit code");
  EXPECT_TRUE(seems_dying_);
  EXPECT_TRUE(IsAlive());
}

TEST_F(AdoptionTest, AnotherLine_ChangesNothing) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  Say("hello\n{\"exit\": 2}\n{\"exit\": 3}\n");
  loop_->Run();
  EXPECT_EQ(end_->status.exit_code, 2);
}

TEST_F(AdoptionTest, Kill_IsReportedAsTheSignal) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  worker->Kill();
  loop_->Run();
  EXPECT_EQ(end_->status.signal, SIGKILL);
}

TEST_F(AdoptionTest, BeforeTheStart_AnyEnd_IsAWithdrawal) {
  Say("{\"exit\": 0}\n");
  loop_->Run();
  EXPECT_TRUE(withdrawn_);
  EXPECT_TRUE(absl::IsFailedPrecondition(adoption_->Start({}, {}, {}).status()));
}

TEST_F(AdoptionTest, BeforeTheStart_ProcessEnds_IsAWithdrawal) {
  process_->Signal(SIGKILL);
  loop_->Run();
  EXPECT_TRUE(withdrawn_);
}

TEST_F(AdoptionTest, AskToEnd_TellsTheGrace) {
  std::unique_ptr<WorkerProcess> worker = Start();
  NextLine();
  worker->AskToEnd(absl::Seconds(30));
  EXPECT_EQ(NextLine(), "{\"stop\":30}\n");
  EXPECT_TRUE(IsAlive());
  Say("{\"exit\": 0}\n");
}

TEST_F(AdoptionTest, Destructor_TheProcessSaysExit_ItLivesOn) {
  std::unique_ptr<WorkerProcess> worker = Start();
  NextLine();
  Say("{\"exit\": 0}\n");
  worker.reset();
  EXPECT_EQ(NextLine(), "{\"stop\":5}\n");
  EXPECT_TRUE(IsAlive());
}

TEST_F(AdoptionTest, Destructor_TheProcessSaysNothing_IsKilledAfterTheLeastGrace) {
  adoption_.reset();
  Adopt(absl::Milliseconds(1));
  Start().reset();
  EXPECT_EQ(process_->Wait().signal, SIGKILL);
}

TEST_F(AdoptionTest, Destructor_TheProcessHasEnded_DoesNotWait) {
  std::unique_ptr<WorkerProcess> worker = Start();
  process_->Signal(SIGKILL);
  worker.reset();
}

TEST_F(AdoptionTest, SendError_IsALine) {
  adoption_->SendError("no way");
  EXPECT_EQ(NextLine(), "{\"error\":\"no way\"}\n");
}

TEST_F(AdoptionTest, SendJobEnd_AfterTheStart_SendsNothing) {
  adoption_->SendJobEnd("gave up");
  EXPECT_EQ(NextLine(), "{\"error\":\"gave up\"}\n");
  std::unique_ptr<WorkerProcess> worker = Start();
  NextLine();
  adoption_->SendJobEnd("gave up");
  worker->AskToEnd(absl::Seconds(30));
  EXPECT_EQ(NextLine(), "{\"stop\":30}\n");
  Say("{\"exit\": 0}\n");
}

TEST_F(AdoptionTest, Includes_TheProcessAndWhatItStarts) {
  const std::unique_ptr<WorkerProcess> worker = Start();
  EXPECT_TRUE(worker->Includes(process_->pid()).value());
  EXPECT_FALSE(worker->Includes(getpid()).value());
  Say("{\"exit\": 0}\n");
}

}  // namespace
}  // namespace hvd::agent::process
