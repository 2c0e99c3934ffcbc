// Tests of the whole program, with its guard, as processes; only the daemon is scripted.
#include "agent/agent_program.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/protocol/agent_frames.h"
#include "agent/testing/joining_program.h"
#include "base/os/process.h"
#include "base/os/process_tree.h"
#include "base/version.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

constexpr char kScriptedAgent[] = "agent/testing/scripted_agent";
// Prints its process number and that of a child in another session, and ignores all signals that
// can be ignored.
constexpr char kStubborn[] =
    "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; echo $$; sleep 1000; sleep 1000' &); "
    "echo $$; while :; do sleep 1000; done";

// A handle of a process that need not be a child, to wait for its end.
class Watched {
 public:
  explicit Watched(pid_t pid)
      : pid_(pid), pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  pid_t pid() const { return pid_; }
  void AwaitEnd() const {
    if (!pidfd_.valid()) return;  // it had ended before
    pollfd waiting = {pidfd_.get(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, -1), 1);
  }

 private:
  pid_t pid_;
  Fd pidfd_;
};

class AgentProgramTest : public testing::Test {
 protected:
  // Starts guard and agent with two workers that run the script.
  void Start(const std::string& script) {
    Pipe output = MakePipe().value();
    os::SpawnOptions options;
    options.file = kScriptedAgent;
    options.argv = {"horovod-agent", "--stdio"};
    options.ignored_signals = ignored_;
    Pipe input = MakePipe().value();
    options.stdin_fd = input.read.get();
    options.stdout_fd = output.write.get();
    guard_.emplace(os::Process::Spawn(options).value());
    input_ = std::move(input.write);
    output_ = std::move(output.read);
    pb::AgentBootstrap bootstrap;
    bootstrap.set_version(kVersion);
    bootstrap.set_host("node7");
    bootstrap.set_slots(2);
    bootstrap.add_daemon_addresses(daemon_);
    for (const std::string& argument : {std::string("/bin/sh"), std::string("-c"), script}) {
      bootstrap.mutable_command()->add_argv(argument);
    }
    bootstrap.mutable_command()->set_working_directory("/");
    (*bootstrap.mutable_command()->mutable_environment())["PATH"] = "/usr/bin:/bin";
    ASSERT_TRUE(net::WriteFrame(input_.get(), bootstrap.SerializeAsString()).ok());
  }

  // The next line of any worker; empty at the end of the agent's output.
  std::string NextLine() {
    for (;;) {
      while (!frames_.empty()) {
        const pb::AgentFrame frame = std::move(frames_.front());
        frames_.pop_front();
        EXPECT_FALSE(frame.has_refusal()) << frame.refusal().message();
        if (frame.has_output()) return frame.output().line();
      }
      char buffer[4096];
      const IoResult got = ReadSome(output_.get(), buffer, sizeof(buffer));
      if (got.end) return "";
      EXPECT_TRUE(
          stream_
              .Append({buffer, got.bytes},
                      [this](pb::AgentFrame&& frame) { frames_.push_back(std::move(frame)); })
              .ok());
    }
  }

  // Starts two stubborn workers and notes all processes: agent, workers and their children.
  void StartStubborn() {
    Start(kStubborn);
    for (int i = 0; i < 4; ++i) everyone_.emplace_back(std::stoi(NextLine()));
    const std::vector<pid_t> children = os::ChildrenOf(guard_->pid());
    ASSERT_EQ(children.size(), 1u);
    agent_ = children[0];
    everyone_.emplace_back(agent_);
  }
  void ExpectNothingLeft() {
    for (const Watched& process : everyone_) process.AwaitEnd();
  }

  const BoundSocket listener_{8};
  std::string daemon_ = listener_.address();
  std::vector<int> ignored_;  // by whoever starts the guard
  std::optional<os::Process> guard_;
  Fd input_, output_;
  pid_t agent_ = 0;
  std::vector<Watched> everyone_;
  protocol::AgentFrameReader stream_;
  std::deque<pb::AgentFrame> frames_;
};

std::string NameOf(pid_t pid) {
  std::string name;
  std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/comm")), name);
  return name;
}

// The first word of the command line.
std::string CommandLineOf(pid_t pid) {
  std::string line;
  std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/cmdline")), line, '\0');
  return line;
}

TEST_F(AgentProgramTest, Names_GuardAndAgent_DifferSoThatPkillMeetsOne) {
  StartStubborn();
  EXPECT_EQ(NameOf(guard_->pid()), "horovod-guard");
  EXPECT_EQ(NameOf(agent_), "horovod-agent");
  EXPECT_EQ(CommandLineOf(guard_->pid()), "horovod-guard");
  EXPECT_EQ(CommandLineOf(agent_), "horovod-agent");
}

TEST_F(AgentProgramTest, Job_WorkersEnd_ExitsZeroWithTheOutput) {
  Start("echo hello");
  EXPECT_EQ(NextLine(), "hello\n");
  EXPECT_EQ(guard_->Wait().exit_code, 0);
}

TEST_F(AgentProgramTest, Kill9_Agent_LeavesNothingAndTellsTheSignal) {
  StartStubborn();
  kill(agent_, SIGKILL);
  EXPECT_EQ(guard_->Wait().exit_code, 128 + SIGKILL);
  // The guard ends last.
  for (const Watched& process : everyone_) EXPECT_NE(kill(process.pid(), 0), 0);
}

TEST_F(AgentProgramTest, Kill9_Guard_LeavesNothing) {
  StartStubborn();
  kill(guard_->pid(), SIGKILL);
  ExpectNothingLeft();
  EXPECT_EQ(NextLine(), "");
}

TEST_F(AgentProgramTest, Kill9_GuardOfAnAgentThatNohupStarted_LeavesNothing) {
  ignored_ = {SIGHUP};
  StartStubborn();
  kill(guard_->pid(), SIGKILL);
  ExpectNothingLeft();
  EXPECT_EQ(NextLine(), "");
}

// Both would take SIGHUP before SIGUSR1, whose number is higher.
TEST_F(AgentProgramTest, Sighup_IgnoredAsByNohup_EndsNothing) {
  ignored_ = {SIGHUP};
  Start(
      "test $HOROVOD_RANK = 0 || exec sleep 1000; trap 'echo noticed' USR1; echo up; "
      "sleep 1000 & wait; wait");
  EXPECT_EQ(NextLine(), "up\n");
  kill(os::ChildrenOf(guard_->pid()).at(0), SIGHUP);
  kill(guard_->pid(), SIGHUP);
  kill(guard_->pid(), SIGUSR1);
  EXPECT_EQ(NextLine(), "noticed\n");
}

TEST_F(AgentProgramTest, InputCloses_LauncherIsGone_LeavesNothing) {
  StartStubborn();
  input_.reset();
  EXPECT_EQ(guard_->Wait().exit_code, 1);
  ExpectNothingLeft();
}

// An agent without a launcher.
class JoinProgramTest : public AgentProgramTest {
 protected:
  // Starts it, with `more` after the options that are needed.
  void Join(const std::vector<std::string>& more) {
    Spawn(kScriptedAgent, {"horovod-agent"}, more);
  }
  // The same, by a shell that stays its parent.
  void JoinByAShell(const std::vector<std::string>& more) {
    Spawn("/bin/sh", {"sh", "-c", "\"$0\" \"$@\" & wait", kScriptedAgent}, more);
  }

  static std::string ReadAll(const Fd& fd) {
    std::string text;
    char buffer[4096];
    for (IoResult got; !(got = ReadSome(fd.get(), buffer, sizeof(buffer))).end;) {
      text.append(buffer, got.bytes);
    }
    return text;
  }

  const TokenFile token_{"join_program_test_token"};
  Fd out_, err_;

 private:
  void Spawn(const std::string& file, const std::vector<std::string>& argv,
             const std::vector<std::string>& more) {
    auto [process, in, out, err] = SpawnJoining(file, argv, daemon_, token_, more);
    guard_.emplace(std::move(process));
    input_ = std::move(in);
    out_ = std::move(out);
    err_ = std::move(err);
  }
};

TEST_F(JoinProgramTest, Job_Ends_OutputHasRanksAndTheCodeIsTheJobs) {
  Join({"--", "sh", "-c", "echo hello; echo oops >&2; exit 7"});
  EXPECT_EQ(guard_->Wait().exit_code, 7);
  EXPECT_EQ(ReadAll(out_), "[0]<stdout>:hello\n");
  const std::string err = ReadAll(err_);
  EXPECT_NE(err.find("[0]<stderr>:oops\n"), std::string::npos) << err;
  EXPECT_NE(err.find("a worker failed\n"), std::string::npos) << err;
}

TEST_F(JoinProgramTest, Success_ExitsZero) {
  Join({"--host", "h", "--", "sh", "-c", "echo $HOROVOD_HOSTNAME"});
  EXPECT_EQ(guard_->Wait().exit_code, 0);
  EXPECT_EQ(ReadAll(out_), "[0]<stdout>:h\n");
  EXPECT_EQ(ReadAll(err_), "horovod-agent: h: has left the job\n");
}

TEST_F(JoinProgramTest, EndWithParent_ParentIsKilled_LeavesNothing) {
  JoinByAShell({"--end-with-parent", "--", "sh", "-c",
                "trap '' TERM HUP INT; echo $$; while :; do sleep 1000; done"});
  const std::string line = ReadLine(out_);  // [0]<stdout>:PID
  const Watched worker(std::stoi(line.substr(line.rfind(':') + 1)));
  kill(guard_->pid(), SIGKILL);
  worker.AwaitEnd();
  EXPECT_EQ(ReadAll(err_),
            "horovod-agent stops its workers and exits: the process that started it has ended\n");
}

TEST_F(JoinProgramTest, EndWithStdin_InputCloses_LeavesNothing) {
  Join({"--end-with-stdin", "--", "sh", "-c",
        "trap '' TERM HUP INT; echo $$; while :; do sleep 1000; done"});
  const std::string line = ReadLine(out_);
  const Watched worker(std::stoi(line.substr(line.rfind(':') + 1)));
  input_.reset();
  EXPECT_EQ(guard_->Wait().exit_code, 1);
  worker.AwaitEnd();
  EXPECT_EQ(ReadAll(err_), "horovod-agent stops its workers and exits: its stdin has ended\n");
}

TEST_F(JoinProgramTest, ParentEnds_WithoutTheOption_JobGoesOn) {
  JoinByAShell({"--host", "elastic", "--", "sh", "-c", "echo $PPID; exec sleep 1000"});
  const std::string line = ReadLine(out_);
  const Watched agent(std::stoi(line.substr(line.rfind(':') + 1)));
  kill(guard_->pid(), SIGKILL);
  guard_->Wait();
  kill(agent.pid(), SIGTERM);  // still alive: it drains
  agent.AwaitEnd();
  const std::string err = ReadAll(err_);
  EXPECT_NE(err.find("elastic: has left the job\n"), std::string::npos) << err;
}

TEST_F(JoinProgramTest, BadInput_IsOneLineAndExitCodeTwo) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--slots", "0", "--", "true"},
           {"--token-file"},
           {"--network-interfaces", "203.0.113.0/24", "--", "true"},
           {"--", "no-such-command"}}) {
    Join(more);
    EXPECT_EQ(guard_->Wait().exit_code, 2);
    const std::string err = ReadAll(err_);
    EXPECT_EQ(err.find("horovod-agent: "), 0u) << err;
    EXPECT_EQ(err.find('\n'), err.size() - 1) << err;
  }
  ASSERT_EQ(chmod(token_.path().c_str(), 0644), 0);
  Join({"--", "true"});
  EXPECT_EQ(guard_->Wait().exit_code, 2);
  EXPECT_NE(ReadAll(err_).find("chmod 600"), std::string::npos);
}

TEST_F(JoinProgramTest, StartTimeout_NobodyListens_SaysWhatToCheck) {
  const BoundSocket bound;
  daemon_ = bound.address();
  Join({"--start-timeout", "1", "--", "true"});
  EXPECT_EQ(guard_->Wait().exit_code, 2);
  const std::string err = ReadAll(err_);
  EXPECT_NE(err.find("can't reach the rendezvous daemon"), std::string::npos) << err;
  EXPECT_EQ(err.find('\n'), err.size() - 1) << err;
}

TEST_F(JoinProgramTest, StartTimeout_DaemonComesLater_IsFound) {
  const BoundSocket bound;
  daemon_ = bound.address();
  Join({"--", "echo", "found"});
  bound.Listen(8);
  EXPECT_EQ(guard_->Wait().exit_code, 0);
  EXPECT_EQ(ReadAll(out_), "[0]<stdout>:found\n");
}

TEST_F(JoinProgramTest, Sigterm_ToEverybody_IsOneRequestToDrain) {
  Join({"--host", "elastic", "--", "sh", "-c", "echo up; exec sleep 1000"});
  EXPECT_EQ(ReadLine(out_), "[0]<stdout>:up\n");
  kill(-guard_->pid(), SIGTERM);
  EXPECT_EQ(guard_->Wait().exit_code, 0);
}

// As from a terminal that is closed.
TEST_F(JoinProgramTest, Sighup_ToEverybody_IsOneRequestToDrain) {
  Join({"--host", "elastic", "--", "sh", "-c", "echo up; exec sleep 1000"});
  EXPECT_EQ(ReadLine(out_), "[0]<stdout>:up\n");
  kill(-guard_->pid(), SIGHUP);
  EXPECT_EQ(guard_->Wait().exit_code, 0);
}

TEST_F(JoinProgramTest, Sigint_ToTheGuard_EndsAtOnce) {
  Join({"--host", "elastic", "--", "sh", "-c",
        "trap '' TERM; echo up; while :; do sleep 1000; done"});
  EXPECT_EQ(ReadLine(out_), "[0]<stdout>:up\n");
  kill(guard_->pid(), SIGINT);
  EXPECT_EQ(guard_->Wait().exit_code, 128 + SIGINT);
}

TEST_F(AgentProgramTest, Sigterm_ToTheGuard_LeavesNothing) {
  StartStubborn();
  kill(guard_->pid(), SIGTERM);
  EXPECT_EQ(guard_->Wait().exit_code, 128 + SIGTERM);
  ExpectNothingLeft();
}

TEST_F(AgentProgramTest, InputCloses_BeforeTheBootstrap_Exits) {
  os::SpawnOptions options;
  options.file = kScriptedAgent;
  options.argv = {"horovod-agent", "--stdio"};
  Pipe input = MakePipe().value();
  input.write.reset();
  options.stdin_fd = input.read.get();
  EXPECT_EQ(os::Process::Spawn(options)->Wait().exit_code, 1);
}

TEST_F(AgentProgramTest, NoOption_ByHand_SaysHowItIsUsed) {
  os::SpawnOptions options;
  options.file = kScriptedAgent;
  options.argv = {"horovod-agent"};
  EXPECT_EQ(os::Process::Spawn(options)->Wait().exit_code, 2);
}

}  // namespace
}  // namespace hvd::agent
