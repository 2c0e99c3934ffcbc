#include "launcher/agent/agent.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/process_tree.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "launcher/spawn/agent_stream.h"

namespace hvd {
namespace {

// The daemon's side of a link, as the test plays it.
class FakeDaemon {
 public:
  std::unique_ptr<AgentLink> Open(const pb::AgentHello& hello, AgentLink::Callbacks callbacks) {
    absl::MutexLock lock(&mutex_);
    hello_ = hello;
    callbacks_ = std::move(callbacks);
    attached_ = true;
    return std::make_unique<Link>(this);
  }
  pb::AgentHello AwaitHello() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&attached_));
    return hello_;
  }
  pb::AgentMessage NextMessage() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](std::deque<pb::AgentMessage>* messages) { return !messages->empty(); }, &messages_));
    pb::AgentMessage message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  void Tell(const pb::AgentCommand& command) { callbacks().on_command(command); }
  void Close(absl::Status status) { callbacks().on_closed(std::move(status)); }

 private:
  class Link : public AgentLink {
   public:
    explicit Link(FakeDaemon* daemon) : daemon_(daemon) {}
    void Send(pb::AgentMessage message) override {
      absl::MutexLock lock(&daemon_->mutex_);
      daemon_->messages_.push_back(std::move(message));
    }
    void Finish() override { daemon_->Close(absl::OkStatus()); }

   private:
    FakeDaemon* const daemon_;
  };

  AgentLink::Callbacks callbacks() {
    absl::MutexLock lock(&mutex_);
    return callbacks_;
  }

  absl::Mutex mutex_;
  pb::AgentHello hello_;
  AgentLink::Callbacks callbacks_;
  bool attached_ = false;
  std::deque<pb::AgentMessage> messages_;
};

class AgentTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    BlockAgentSignals();
    BecomeSubreaper();
  }

  AgentTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    bootstrap_.set_version(kVersion);
    bootstrap_.set_job_id("job");
    bootstrap_.set_host("node7");
    bootstrap_.set_slots(2);
    bootstrap_.mutable_credentials()->set_token("secret");
    bootstrap_.add_daemon_addresses(absl::StrCat("127.0.0.1:", ntohs(name.sin_port)));
    bootstrap_.mutable_command()->set_working_directory("/");
    (*bootstrap_.mutable_command()->mutable_environment())["PATH"] = "/usr/bin:/bin";
  }
  ~AgentTest() override {
    input_.write.reset();
    output_.read.reset();
    if (thread_.joinable()) thread_.join();
  }

  void SetScript(const std::string& script) {
    for (const char* argument : {"sh", "-c"}) bootstrap_.mutable_command()->add_argv(argument);
    bootstrap_.mutable_command()->add_argv(script);
  }
  // Starts the agent; its workers run the script.
  void StartAgent() {
    thread_ = std::thread([this] {
      std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
      Agent agent(*loop, input_.read.get(), output_.write.get(),
                  [this](const std::string&, const PeerCredentials&, const pb::AgentHello& hello,
                         AgentLink::Callbacks callbacks) {
                    return daemon_.Open(hello, std::move(callbacks));
                  });
      exit_code_ = agent.Run();
      output_.write.reset();
    });
    ASSERT_TRUE(WriteFrame(input_.write.get(), bootstrap_.SerializeAsString()).ok());
  }
  // The same, as far as the worker's WorkerStarted.
  void StartWorker(const std::string& script) {
    SetScript(script);
    StartAgent();
    daemon_.AwaitHello();
    pb::AgentCommand welcome;
    welcome.mutable_welcome();
    daemon_.Tell(welcome);
    TellStart(1);
    ASSERT_EQ(daemon_.NextMessage().started().worker_id(), 1u);
  }
  void TellStart(uint64_t id) {
    pb::AgentCommand command;
    command.mutable_start()->set_worker_id(id);
    command.mutable_start()->set_rank(static_cast<int>(id) - 1);
    command.mutable_start()->set_size(2);
    daemon_.Tell(command);
  }
  void TellStop(uint64_t id, uint32_t grace_ms) {
    pb::AgentCommand command;
    command.mutable_stop()->add_worker_ids(id);
    command.mutable_stop()->set_grace_ms(grace_ms);
    daemon_.Tell(command);
  }
  void TellEnd() {
    pb::AgentCommand command;
    command.mutable_end();
    daemon_.Tell(command);
  }
  pb::WorkerExited AwaitExited() { return daemon_.NextMessage().exited(); }

  // The next frame of the agent's stdout; an empty one at its end.
  pb::AgentFrame NextFrame() {
    while (frames_.empty()) {
      char buffer[4096];
      const IoResult got = ReadSome(output_.read.get(), buffer, sizeof(buffer));
      if (got.end) return {};
      EXPECT_TRUE(
          stream_
              .Append({buffer, got.bytes},
                      [this](pb::AgentFrame&& frame) { frames_.push_back(std::move(frame)); })
              .ok());
    }
    pb::AgentFrame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  // The next line of output.
  std::string NextLine() {
    pb::AgentFrame frame = NextFrame();
    while (frame.has_ready()) frame = NextFrame();
    return frame.output().line();
  }
  // Reads a number that a worker has written.
  pid_t NextPid() { return std::stoi(NextLine()); }

  int Join() {
    thread_.join();
    return exit_code_;
  }

  const Fd listener_;
  FakeDaemon daemon_;
  pb::AgentBootstrap bootstrap_;
  Pipe input_ = MakePipe().value();
  Pipe output_ = MakePipe().value();
  AgentStream stream_;
  std::deque<pb::AgentFrame> frames_;
  int exit_code_ = -1;
  std::thread thread_;
};

bool IsGone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

TEST_F(AgentTest, Job_WorkerExitsZero_RunsFromReadyToTheEnd) {
  StartWorker("echo out; echo err >&2; printf partial");
  const pb::AgentHello hello = daemon_.AwaitHello();
  EXPECT_EQ(hello.host(), "node7");
  EXPECT_EQ(hello.slots(), 2u);
  EXPECT_NE(hello.incarnation(), 0u);
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.exit_code(), 0);
  EXPECT_EQ(exited.stderr_tail(0), "err");
  TellEnd();
  EXPECT_EQ(Join(), 0);
  EXPECT_EQ(NextFrame().ready().version(), kVersion);
  std::string out, err;
  for (pb::AgentFrame frame; (frame = NextFrame()).has_output();) {
    (frame.output().is_stderr() ? err : out) += frame.output().line();
  }
  EXPECT_EQ(out, "out\npartial");
  EXPECT_EQ(err, "err\n");
}

TEST_F(AgentTest, Worker_Environment_NamesItsPlace) {
  StartWorker("echo $HOROVOD_RANK $HOROVOD_SIZE $HOROVOD_HOSTNAME $HOROVOD_WORKER_ID");
  EXPECT_EQ(NextLine(), "0 2 node7 1\n");
}

TEST_F(AgentTest, WorkerExited_CodeOrSignal_IsReported) {
  StartWorker("test $HOROVOD_RANK = 0 && exit 3; kill -SEGV $$");
  EXPECT_EQ(AwaitExited().exit_code(), 3);
  TellStart(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.worker_id(), 2u);
  EXPECT_EQ(exited.signal(), SIGSEGV);
  EXPECT_FALSE(exited.out_of_memory());
}

TEST_F(AgentTest, WorkerExited_MuchOnStderr_TailIsComplete) {
  StartWorker("for i in $(seq 1000); do echo line $i >&2; done; printf 'caf\\351' >&2; exit 1");
  std::thread reader([this] {
    while (NextLine() != "") {
    }
  });
  const pb::WorkerExited exited = AwaitExited();
  ASSERT_EQ(exited.stderr_tail_size(), 40);
  EXPECT_EQ(exited.stderr_tail(38), "line 1000");
  EXPECT_EQ(exited.stderr_tail(39), "caf\xef\xbf\xbd");
  TellEnd();
  reader.join();
}

TEST_F(AgentTest, Stop_WorkerObeys_EndsBySigterm) {
  StartWorker("echo up; exec sleep 1000");
  EXPECT_EQ(NextLine(), "up\n");
  TellStop(1, 100000);
  EXPECT_EQ(AwaitExited().signal(), SIGTERM);
}

TEST_F(AgentTest, Stop_WorkerIgnoresSigterm_IsKilledAfterGrace) {
  StartWorker("trap '' TERM; echo up; while :; do sleep 1000; done");
  EXPECT_EQ(NextLine(), "up\n");
  TellStop(1, 20);
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.signal(), SIGKILL);
  EXPECT_FALSE(exited.out_of_memory());
}

TEST_F(AgentTest, Stop_SecondTimeWithoutGrace_KillsAtOnce) {
  StartWorker("trap '' TERM; echo up; while :; do sleep 1000; done");
  EXPECT_EQ(NextLine(), "up\n");
  TellStop(1, 1000000);
  TellStop(1, 0);
  EXPECT_EQ(AwaitExited().signal(), SIGKILL);
}

TEST_F(AgentTest, WorkerExited_GrandchildHoldsThePipe_IsReportedAndGrandchildKilled) {
  StartWorker("sleep 1000 & echo $!; exit 4");
  const pid_t grandchild = NextPid();
  EXPECT_EQ(AwaitExited().exit_code(), 4);
  TellEnd();
  EXPECT_EQ(Join(), 0);
  EXPECT_TRUE(IsGone(grandchild));
}

TEST_F(AgentTest, WorkerExited_GrandchildInAnotherSession_IsKilledWhileOthersRun) {
  StartWorker(
      "test $HOROVOD_RANK = 1 && { echo up; exec sleep 1000; }; trap 'exit 5' TERM; "
      "(setsid sh -c 'echo $$; exec sleep 1000' &); sleep 1000 & wait");
  TellStart(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  std::string line = NextLine();
  if (line == "up\n") line = NextLine();
  const pid_t grandchild = std::stoi(line);
  TellStop(1, 1000000);
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, grandchild, 0)));
  EXPECT_EQ(AwaitExited().exit_code(), 5);
  pollfd waiting = {pidfd.get(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, -1), 1);
}

TEST_F(AgentTest, Start_CommandVanished_IsReportedAsStartError) {
  std::string directory = testing::TempDir() + "/agentXXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string program = directory + "/program";
  ASSERT_EQ(symlink("/bin/true", program.c_str()), 0);
  bootstrap_.mutable_command()->add_argv(program);
  StartAgent();
  daemon_.AwaitHello();
  ASSERT_EQ(unlink(program.c_str()), 0);
  TellStart(1);
  EXPECT_NE(AwaitExited().start_error().find(program), std::string::npos);
}

TEST_F(AgentTest, Refusal_CommandNotFound_NamesHostAndCommand) {
  bootstrap_.mutable_command()->add_argv("no-such-command");
  StartAgent();
  const std::string message = NextFrame().refusal().message();
  EXPECT_NE(message.find("node7: command not found: no-such-command"), std::string::npos);
  EXPECT_EQ(Join(), 2);
}

TEST_F(AgentTest, Refusal_NetworkNotHere_SaysWhatThereIs) {
  SetScript("true");
  bootstrap_.add_networks("203.0.113.0/24");
  StartAgent();
  const std::string message = NextFrame().refusal().message();
  EXPECT_NE(message.find("node7: no address in 203.0.113.0/24"), std::string::npos) << message;
  EXPECT_EQ(Join(), 2);
}

TEST_F(AgentTest, Refusal_DaemonNotReachable_NamesTheAddress) {
  SetScript("true");
  bootstrap_.clear_daemon_addresses();
  bootstrap_.add_daemon_addresses("nonsense");
  StartAgent();
  const std::string message = NextFrame().refusal().message();
  EXPECT_NE(message.find("node7: can't reach"), std::string::npos) << message;
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
  EXPECT_EQ(Join(), 2);
}

TEST_F(AgentTest, Refusal_DaemonDoesNotTakeIt_SaysWhy) {
  SetScript("true");
  StartAgent();
  daemon_.AwaitHello();
  daemon_.Close(absl::AlreadyExistsError("node7 has attached already"));
  EXPECT_TRUE(NextFrame().has_ready());
  EXPECT_NE(NextFrame().refusal().message().find("node7 has attached already"), std::string::npos);
  EXPECT_EQ(Join(), 2);
}

// Each way to lose the job must end worker and grandchildren at once, SIGTERM ignored or not.
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
  EXPECT_TRUE(IsGone(first));
  EXPECT_TRUE(IsGone(second));
}

TEST_F(AgentTest, End_WorkersStillRun_StopsThemFirst) {
  StartWorker("echo up; exec sleep 1000");
  EXPECT_EQ(NextLine(), "up\n");
  TellEnd();
  EXPECT_EQ(AwaitExited().worker_id(), 1u);
  EXPECT_EQ(Join(), 0);
}

TEST_F(AgentTest, Output_LauncherDoesNotRead_WorkerWaitsAndItsEndIsNoticed) {
  const std::string line = "0123456789012345678901234567\n";
  // Writes without end; rank 1 ends meanwhile.
  StartWorker("test $HOROVOD_RANK = 1 && exit 6; echo up; exec yes 0123456789012345678901234567");
  EXPECT_EQ(NextLine(), "up\n");
  TellStart(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  EXPECT_EQ(AwaitExited().exit_code(), 6);
  TellStop(1, 0);
  EXPECT_EQ(AwaitExited().signal(), SIGKILL);
  TellEnd();
  // Once it is read, everything comes, and it is no more than was allowed to wait.
  size_t bytes = 0;
  for (std::string next; (next = NextLine()) == line;) bytes += next.size();
  EXPECT_EQ(Join(), 0);
  EXPECT_LE(bytes, 2 * FrameWriter::kFullBytes);
}

TEST_F(AgentTest, Socket_OwnWorker_GetsCredentialsAndAddresses) {
  StartWorker("echo $HOROVOD_AGENT_SOCKET; exec sleep 1000");
  std::string name = NextLine();
  name.pop_back();
  const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  pb::WorkerHello hello;
  hello.set_worker_id(1);
  ASSERT_TRUE(WriteFrame(fd.get(), hello.SerializeAsString()).ok());
  pb::WorkerBootstrap answer;
  ASSERT_TRUE(answer.ParseFromString(ReadFrame(fd.get(), kMaxFrameBytes).value()));
  EXPECT_EQ(answer.error(), "");
  EXPECT_EQ(answer.credentials().token(), "secret");
  EXPECT_EQ(answer.host(), "node7");
  EXPECT_EQ(answer.daemon_address(), bootstrap_.daemon_addresses(0));
  EXPECT_EQ(answer.advertise_address(), "127.0.0.1");
}

}  // namespace
}  // namespace hvd
