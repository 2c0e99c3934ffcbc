#include "agent/agent.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/output/frame_writer.h"
#include "agent/protocol/agent_protocol.h"
#include "agent/testing/agent_fixture.h"
#include "agent/testing/tls_program.h"
#include "base/fd.h"
#include "base/net/address.h"
#include "base/net/frames.h"
#include "base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/security/credentials_message.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::agent {
namespace {

TEST_F(AgentTest, Job_WorkerExitsZero_RunsFromReadyToTheEnd) {
  StartWorker("echo out; echo err >&2; printf partial");
  const pb::AgentHello hello = daemon_.AwaitHello();
  EXPECT_EQ(hello.host(), "node7");
  EXPECT_EQ(hello.slots(), 2u);
  EXPECT_NE(hello.incarnation(), 0u);
  EXPECT_THAT(hello.store_address(), testing::MatchesRegex("127\\.0\\.0\\.1:[0-9]+"));
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.exit_code(), 0);
  EXPECT_EQ(exited.stderr_tail(0), "err");
  SendEnd();
  EXPECT_EQ(Join(), 0);
  EXPECT_EQ(NextFrame().ready().version(), kVersion);
  std::string out, err;
  for (pb::AgentFrame frame; (frame = NextFrame()).has_output();) {
    (frame.output().is_stderr() ? err : out) += frame.output().line();
  }
  EXPECT_EQ(out, "out\npartial");
  EXPECT_EQ(err, "err\n");
}

TEST_F(AgentTest, Hello_NamesTheCommandBriefly) {
  SetScript(std::string(100000, 'x'));
  StartAgent();
  const std::string command = daemon_.AwaitHello().command();
  EXPECT_THAT(command, testing::StartsWith("sh -c xxx"));
  EXPECT_LT(command.size(), 1100u);
  SendWelcome();
  SendEnd();
  EXPECT_EQ(Join(), 0);
}

// An agent that can't take signals would be deaf to its guard.
TEST_F(AgentTest, Run_NoDescriptorForSignals_RefusesAndEnds) {
  const std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  output::FrameWriter writer(*loop, output_.write.get());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Agent agent(*loop, writer, nullptr, settings_);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(agent.Run(), protocol::kAgentRefusedExitCode);
}

TEST_F(AgentTest, Worker_Environment_NamesItsPlace) {
  StartWorker("echo $HOROVOD_RANK $HOROVOD_SIZE $HOROVOD_HOSTNAME $HOROVOD_WORKER_ID");
  EXPECT_EQ(NextLine(), "0 2 node7 1\n");
}

TEST_F(AgentTest, Worker_Input_IsOnItsStdinAndNowhereElse) {
  bootstrap_.mutable_command()->set_input("a secret\n");
  StartWorker("cat; cat; env | grep -c secret; grep -c secret /proc/self/environ");
  EXPECT_EQ(NextLine(), "a secret\n");
  EXPECT_EQ(NextLine(), "0\n");
  EXPECT_EQ(NextLine(), "0\n");
}

TEST_F(AgentTest, Worker_InputThatAPipeDoesNotTake_IsAnErrorAndNoHang) {
  bootstrap_.mutable_command()->set_input(std::string(2 << 20, 'x'));
  SetScript("cat");
  StartAgent();
  daemon_.AwaitHello();
  SendWelcome();
  SendStart(1);
  const std::string error = AwaitExited().start_error();
  EXPECT_NE(error.find("of 2097152 bytes"), std::string::npos) << error;
}

TEST_F(AgentTest, WorkerExited_CodeOrSignal_IsReported) {
  StartWorker("test $HOROVOD_RANK = 0 && exit 3; kill -SEGV $$");
  EXPECT_EQ(AwaitExited().exit_code(), 3);
  SendStart(2);
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
  SendEnd();
  reader.join();
}

TEST_F(AgentTest, Sample_WorkerWithoutPython_IsAnsweredByWhatTheKernelSays) {
  StartWorker("echo up; kill -STOP $$");
  EXPECT_EQ(NextLine(), "up\n");
  pb::AgentCommand command;
  command.mutable_sample()->set_worker_id(1);
  std::string doing;
  while (doing != "is stopped by a signal (SIGSTOP)") {  // the stop takes effect soon
    daemon_.Send(command);
    const pb::AgentMessage message = daemon_.NextMessage();
    ASSERT_EQ(message.sampled().worker_id(), 1u);
    doing = message.sampled().doing();
  }
}

TEST_F(AgentTest, Stop_WorkerObeys_EndsBySigterm) {
  StartWorker("echo up; exec sleep 1000");
  EXPECT_EQ(NextLine(), "up\n");
  SendStop(1, 100000);
  EXPECT_EQ(AwaitExited().signal(), SIGTERM);
}

TEST_F(AgentTest, Stop_WorkerIgnoresSigterm_IsKilledAfterGrace) {
  StartWorker("trap '' TERM; echo up; while :; do sleep 1000; done");
  EXPECT_EQ(NextLine(), "up\n");
  SendStop(1, 20);
  const pb::WorkerExited exited = AwaitExited();
  EXPECT_EQ(exited.signal(), SIGKILL);
  EXPECT_FALSE(exited.out_of_memory());
}

TEST_F(AgentTest, Stop_SecondTimeWithoutGrace_KillsAtOnce) {
  StartWorker("trap '' TERM; echo up; while :; do sleep 1000; done");
  EXPECT_EQ(NextLine(), "up\n");
  SendStop(1, 1000000);
  SendStop(1, 0);
  EXPECT_EQ(AwaitExited().signal(), SIGKILL);
}

TEST_F(AgentTest, WorkerExited_GrandchildHoldsThePipe_IsReportedAndGrandchildKilled) {
  StartWorker("sleep 1000 & echo $!; exit 4");
  const pid_t grandchild = NextPid();
  EXPECT_EQ(AwaitExited().exit_code(), 4);
  SendEnd();
  EXPECT_EQ(Join(), 0);
  EXPECT_TRUE(IsGone(grandchild));
}

TEST_F(AgentTest, WorkerExited_GrandchildInAnotherSession_IsKilledWhileOthersRun) {
  StartWorker(
      "test $HOROVOD_RANK = 1 && { echo up; exec sleep 1000; }; trap 'exit 5' TERM; "
      "(setsid sh -c 'echo $$; exec sleep 1000' &); sleep 1000 & wait");
  SendStart(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  std::string line = NextLine();
  if (line == "up\n") line = NextLine();
  const pid_t grandchild = std::stoi(line);
  SendStop(1, 1000000);
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
  SendStart(1);
  EXPECT_NE(AwaitExited().start_error().find(program), std::string::npos);
}

TEST_F(AgentTest, Refusal_CommandNotFound_NamesHostAndCommand) {
  bootstrap_.mutable_command()->add_argv("no-such-command");
  StartAgent();
  const std::string message = NextFrame().refusal().message();
  EXPECT_NE(message.find("node7: command not found: no-such-command"), std::string::npos);
  EXPECT_EQ(Join(), 2);
}

TEST_F(AgentTest, Refusal_UnknownNetwork_ListsTheNetworks) {
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

// At the first of two addresses a program accepts connections and says nothing.
TEST_F(AgentTest, SeveralDaemons_TheOneThatProvesItselfComesFirst) {
  const auto authority = *rendezvous::security::JobAuthority::Create("job");
  const TlsProgram real(*authority->IssueForDaemon());
  *bootstrap_.mutable_credentials() =
      rendezvous::security::ToMessage(*authority->IssueForHost("node7"));
  bootstrap_.add_daemon_addresses(real.address());
  settings_.daemon_name = absl::StrCat(listener_.address(), ",", real.address());
  SetScript("true");
  StartAgent();
  daemon_.AwaitHello();
  EXPECT_EQ(link_address_, absl::StrCat(real.address(), ",", listener_.address()));
  SendWelcome();
  SendEnd();
  EXPECT_EQ(Join(), 0);
}

bool CanListenAt(const std::string& address) {
  const net::SocketAddress name = *net::ParseSocketAddress(address);
  const Fd server(socket(name.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  return bind(server.get(), reinterpret_cast<const sockaddr*>(&name.storage), name.length) == 0 &&
         listen(server.get(), 1) == 0;
}

// Any user of the machine could take it from another process.
TEST_F(AgentTest, StorePort_IsFreeFromTheStartOfRank0On) {
  SetScript("exec sleep 1000");
  StartAgent();
  const std::string address = daemon_.AwaitHello().store_address();
  SendWelcome();
  SendStart(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  EXPECT_FALSE(CanListenAt(address));
  SendStart(1, 1);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 1u);
  EXPECT_TRUE(CanListenAt(address));
  SendEnd();
  EXPECT_EQ(Join(), 0);
}

TEST_F(AgentTest, FirstStreamBreaks_AttachesWithAnother) {
  SetScript("true");
  StartAgent();
  const uint64_t incarnation = daemon_.AwaitHello(1).incarnation();
  daemon_.Close(absl::UnavailableError("Socket closed"));
  EXPECT_EQ(daemon_.AwaitHello(2).incarnation(), incarnation);
  SendWelcome();
  SendEnd();
  EXPECT_EQ(Join(), 0);
}

// A stranger may hold the daemon's port while the daemon is away, and never answer.
TEST_F(AgentTest, DaemonIsAway_OneAttemptLeavesTimeForOthers) {
  welcome_.set_reattach_ms(600000);
  SetScript("exec sleep 1000");
  StartAgent();
  daemon_.AwaitHello(1);
  SendWelcome();
  SendStart(1);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 1u);
  daemon_.Close(absl::UnavailableError("Socket closed"));
  daemon_.AwaitHello(2);
  EXPECT_LE(3 * link_patience_.attempt, link_patience_.silence);
  SendWelcome();
  SendEnd();
  EXPECT_EQ(Join(), 0);
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

TEST_F(AgentTest, Refusal_AnotherAgentHasItsPlace_SaysWhy) {
  welcome_.set_reattach_ms(600000);
  SetScript("exec sleep 1000");
  StartAgent();
  daemon_.AwaitHello(1);
  SendWelcome();
  daemon_.Close(absl::UnavailableError("Connection timed out"));
  daemon_.AwaitHello(2);
  daemon_.Close(absl::AlreadyExistsError("another agent has attached as host node7"));
  EXPECT_TRUE(NextFrame().has_ready());
  EXPECT_NE(NextFrame().refusal().message().find(
                "did not take this host: another agent has attached as host node7"),
            std::string::npos);
  EXPECT_EQ(Join(), 2);
}

TEST_F(AgentTest, Output_LauncherDoesNotRead_WorkerWaitsAndItsEndIsNoticed) {
  const std::string line = "0123456789012345678901234567\n";
  // Writes endlessly; rank 1 ends in the meantime.
  StartWorker("test $HOROVOD_RANK = 1 && exit 6; echo up; exec yes 0123456789012345678901234567");
  EXPECT_EQ(NextLine(), "up\n");
  SendStart(2);
  EXPECT_EQ(daemon_.NextMessage().started().worker_id(), 2u);
  EXPECT_EQ(AwaitExited().exit_code(), 6);
  SendStop(1, 0);
  EXPECT_EQ(AwaitExited().signal(), SIGKILL);
  SendEnd();
  // Once the output is read, all of it arrives, and not more than the limit of waiting output.
  size_t bytes = 0;
  for (std::string next; (next = NextLine()) == line;) bytes += next.size();
  EXPECT_EQ(Join(), 0);
  EXPECT_LE(bytes, 2 * output::FrameWriter::kFullBytes);
}

class AgentSocketTest : public AgentTest {
 protected:
  AgentSocketTest() {
    OfferHolder();
    settings_.daemon_name = "training:4711";
  }

  // The socket's name and the worker's secret, which only worker 1 and the agent know.
  struct Place {
    std::string socket, word;
  };
  Place StartWorkerAndSpy() {
    StartWorker("echo $HOROVOD_AGENT_SOCKET; echo $HOROVOD_WORKER_WORD; exec sleep 1000");
    Place place{NextLine(), NextLine()};
    place.socket.pop_back();
    place.word.pop_back();
    return place;
  }

  // Asks the agent as a process of the same user that no worker has started: this one.
  static pb::WorkerBootstrap Ask(const std::string& socket_name, const std::string& word) {
    const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    socket_name.copy(address.sun_path + 1, socket_name.size());
    const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + socket_name.size();
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    pb::WorkerHello hello;
    hello.set_worker_id(1);
    hello.set_word(word);
    EXPECT_TRUE(net::WriteFrame(fd.get(), hello.SerializeAsString()).ok());
    pb::WorkerBootstrap answer;
    EXPECT_TRUE(answer.ParseFromString(net::ReadFrame(fd.get(), net::kMaxFrameBytes).value()));
    return answer;
  }
};

constexpr char kAll[] = "secret node7 training:4711 127.0.0.1 page 1 arena 0 stack 1\n";

TEST_F(AgentSocketTest, OwnWorker_GetsCredentialsAndAddresses) {
  StartWorker("exec $HOLDER answer");
  EXPECT_EQ(NextLine(), kAll);
  EXPECT_EQ(link_address_, "training:4711");
}

TEST_F(AgentSocketTest, ProcessesBelowTheWorker_OrphansToo_GetThem) {
  StartWorker("sh -c '$HOLDER answer; exit 0'; (setsid sh -c '$HOLDER answer' &); exec sleep 1000");
  EXPECT_EQ(NextLine(), kAll);
  EXPECT_EQ(NextLine(), kAll);
}

TEST_F(AgentSocketTest, WithoutTheSecret_GetsNothing) {
  StartWorker(
      "HOROVOD_WORKER_WORD= $HOLDER answer; "
      "HOROVOD_WORKER_WORD=00000000000000000000000000000000 $HOLDER answer");
  for (const char* reason : {"WORD in its environment is missing", "is wrong"}) {
    const std::string line = NextLine();
    EXPECT_NE(line.find(reason), std::string::npos) << line;
    EXPECT_EQ(line.find("secret"), std::string::npos) << line;
    EXPECT_NE(line.find("page 0 arena 0 stack 0"), std::string::npos) << line;
  }
}

TEST_F(AgentSocketTest, UnrelatedProcessWithTheSecret_GetsNothing) {
  const Place place = StartWorkerAndSpy();
  const pb::WorkerBootstrap answer = Ask(place.socket, place.word);
  EXPECT_NE(answer.error().find("was not started by worker 1"), std::string::npos);
  EXPECT_FALSE(answer.has_credentials());
  EXPECT_FALSE(answer.has_stack_pipe());
}

}  // namespace
}  // namespace hvd::agent
