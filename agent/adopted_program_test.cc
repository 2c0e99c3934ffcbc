// The whole program with an adopted process; only the daemon is scripted.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

constexpr char kScriptedAgent[] = "agent/testing/scripted_agent";
constexpr char kPageHolder[] = "agent/testing/page_holder";
// Starts its agent, says its number and lives on. What it says to its agent, and hears from it, is
// for the test.
constexpr char kAdoptee[] =
    "exec 3<&0; \"$0\" \"$@\" --adopt $$ <&3 & agent=$!; exec >&- 3<&- <&-; wait $agent; code=$?; "
    "echo agent $code >&2; exec sleep 1000";

class AdoptedProgramTest : public testing::Test {
 protected:
  AdoptedProgramTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    signal(SIGPIPE, SIG_IGN);
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    daemon_ = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
    std::ofstream(token_file_)
        << "token: 't' ca_certificate: 'a' certificate: 'c' private_key: 'k'";
    EXPECT_EQ(chmod(token_file_.c_str(), 0600), 0);
  }
  ~AdoptedProgramTest() override { unlink(token_file_.c_str()); }

  // A shell that is adopted.
  void StartAdoptee(const std::vector<std::string>& more = {}) {
    Spawn("/bin/sh", {"sh", "-c", kAdoptee, kScriptedAgent}, more);
  }
  void Spawn(const std::string& file, std::vector<std::string> argv,
             const std::vector<std::string>& more) {
    Pipe in = MakePipe().value();
    Pipe out = MakePipe().value();
    Pipe err = MakePipe().value();
    argv.insert(argv.end(), {"--join", daemon_, "--token-file", token_file_});
    argv.insert(argv.end(), more.begin(), more.end());
    os::SpawnOptions options;
    options.file = file;
    options.argv = std::move(argv);
    options.stdin_fd = in.read.get();
    options.stdout_fd = out.write.get();
    options.stderr_fd = err.write.get();
    process_.emplace(os::Process::Spawn(options).value());
    in_ = std::move(in.write);
    out_ = std::move(out.read);
    err_ = std::move(err.read);
  }
  void Say(const std::string& line) { WriteAll(in_.get(), line).IgnoreError(); }
  static std::string ReadLine(const Fd& fd) {
    std::string line;
    for (char byte = 0; byte != '\n' && ReadSome(fd.get(), &byte, 1).bytes == 1;) line += byte;
    return line;
  }
  // The value of a variable in a start line.
  static std::string ValueIn(const std::string& line, const std::string& name) {
    std::smatch found;
    const std::regex variable("\"" + name + "\": \"([^\"]*)\"");
    return std::regex_search(line, found, variable) ? found[1].str() : "";
  }
  // What a worker that asks the agent is told. It is a child of this process.
  static std::string Ask(const std::string& start_line, const std::string& what) {
    os::SpawnOptions options;
    options.file = kPageHolder;
    options.argv = {"page_holder", what};
    options.environment.emplace();
    for (const char* name : {"HOROVOD_AGENT_SOCKET", "HOROVOD_WORKER_ID", "HOROVOD_WORKER_WORD"}) {
      options.environment->push_back(absl::StrCat(name, "=", ValueIn(start_line, name)));
    }
    Pipe out = MakePipe().value();
    options.stdout_fd = out.write.get();
    const os::Process holder = os::Process::Spawn(options).value();
    out.write.reset();
    return ReadLine(out.read);
  }
  bool IsAlive() const { return !process_->PeekExit().has_value(); }

  const Fd listener_;
  std::string daemon_;
  const std::string token_file_ = testing::TempDir() + "/adopted_program_test_token";
  std::optional<os::Process> process_;
  Fd in_, out_, err_;
};

TEST_F(AdoptedProgramTest, Job_Ends_TheProcessLivesOn) {
  StartAdoptee({"--host", "h"});
  const std::string start = ReadLine(out_);
  EXPECT_TRUE(absl::StartsWith(start, "{\"start\": {")) << start;
  EXPECT_EQ(ValueIn(start, "HOROVOD_RANK"), "0") << start;
  EXPECT_EQ(ValueIn(start, "HOROVOD_HOSTNAME"), "h") << start;
  EXPECT_EQ(ValueIn(start, "PATH"), "") << start;
  Say("{\"exit\": 7}\n");
  EXPECT_EQ(ReadLine(err_), "agent 7\n");
  EXPECT_EQ(ReadLine(out_), "");
  EXPECT_TRUE(IsAlive());
}

TEST_F(AdoptedProgramTest, ElasticJob_TheProcessLeaves_TheAgentDrains) {
  StartAdoptee({"--host", "elastic"});
  EXPECT_EQ(ValueIn(ReadLine(out_), "HOROVOD_ELASTIC"), "1");
  Say("{\"exit\": 0}\n");
  EXPECT_EQ(ReadLine(err_), "agent 0\n");
}

TEST_F(AdoptedProgramTest, Bootstrap_ToldWhoDescendsFromTheProcess) {
  Spawn(kScriptedAgent, {"horovod-agent", "--adopt", absl::StrCat(getpid())},
        {"--host", "elastic"});
  const std::string start = ReadLine(out_);
  const std::string answer = Ask(start, "answer");
  EXPECT_TRUE(absl::StartsWith(answer, "t elastic ")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "page 1 arena 1 stack 1")) << answer;
  Say("{\"exit\": 0}\n");
  EXPECT_EQ(process_->Wait().exit_code, 0);
}

TEST_F(AdoptedProgramTest, Bootstrap_AnotherProcessWithTheWord_IsRefused) {
  StartAdoptee();
  const std::string answer = Ask(ReadLine(out_), "answer");
  EXPECT_TRUE(absl::StartsWith(answer, "this process was not started by worker 1")) << answer;
}

TEST_F(AdoptedProgramTest, Sigterm_ToTheAgentOfAnElasticJob_TheProcessIsTold) {
  Spawn(kScriptedAgent, {"horovod-agent", "--adopt", absl::StrCat(getpid())},
        {"--host", "elastic"});
  ReadLine(out_);
  process_->Signal(SIGTERM);
  EXPECT_EQ(ReadLine(out_), "{\"stop\": 5}\n");
  Say("{\"exit\": 0}\n");
  EXPECT_EQ(process_->Wait().exit_code, 0);
}

TEST_F(AdoptedProgramTest, Sigint_ToTheAgent_TheProcessIsToldAndLives) {
  Spawn(kScriptedAgent, {"horovod-agent", "--adopt", absl::StrCat(getpid())}, {});
  ReadLine(out_);
  process_->Signal(SIGINT);
  EXPECT_EQ(ReadLine(out_), "{\"stop\": 5}\n");
  Say("{\"exit\": 0}\n");
  EXPECT_EQ(process_->Wait().exit_code, 128 + SIGINT);
}

TEST_F(AdoptedProgramTest, Kill9_TheProcess_TheAgentEnds) {
  StartAdoptee();
  ReadLine(out_);
  process_->Signal(SIGKILL);
  EXPECT_EQ(ReadLine(out_), "");
}

TEST_F(AdoptedProgramTest, Kill9_TheProcessHasNotStartedYet_TheAgentEnds) {
  // Nobody accepts: the agent looks for the daemon.
  const Fd bound(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(bound.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(getsockname(bound.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  daemon_ = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
  StartAdoptee({"--start-timeout", "600"});
  process_->Signal(SIGKILL);
  EXPECT_EQ(ReadLine(out_), "");
}

TEST_F(AdoptedProgramTest, Refusal_IsToldToTheProcess) {
  StartAdoptee({"--network-interfaces", "203.0.113.0/24"});
  EXPECT_TRUE(absl::StrContains(ReadLine(out_), "{\"error\": "));
  EXPECT_TRUE(absl::StrContains(ReadLine(err_), "203.0.113.0/24"));
  EXPECT_EQ(ReadLine(err_), "agent 2\n");
}

TEST_F(AdoptedProgramTest, BadInput_IsOneLineAndExitCodeTwo) {
  StartAdoptee();
  ReadLine(out_);
  const std::string sibling = absl::StrCat(process_->pid());
  const os::Process adoptee = *std::move(process_);
  const struct {
    std::string pid;
    const char* expected;
  } cases[] = {{"4194304", "there is no such process"},
               {sibling, "that process has not started this one"},
               {"x", "'x'"}};
  for (const auto& bad : cases) {
    Spawn(kScriptedAgent, {"horovod-agent", "--adopt", bad.pid}, {});
    EXPECT_EQ(process_->Wait().exit_code, 2);
    const std::string line = ReadLine(err_);
    EXPECT_TRUE(absl::StartsWith(line, "horovod-agent: --adopt")) << line;
    EXPECT_TRUE(absl::StrContains(line, bad.expected)) << line;
    EXPECT_EQ(ReadLine(err_), "");
  }
}

TEST_F(AdoptedProgramTest, NoPipe_IsRefused) {
  Pipe err = MakePipe().value();
  os::SpawnOptions options;
  options.file = kScriptedAgent;
  options.argv = {"horovod-agent",       "--join", daemon_, "--token-file", token_file_, "--adopt",
                  absl::StrCat(getpid())};
  options.stderr_fd = err.write.get();
  EXPECT_EQ(os::Process::Spawn(options)->Wait().exit_code, 2);
  EXPECT_TRUE(absl::StrContains(ReadLine(err.read), "stdin and stdout must be pipes"));
}

}  // namespace
}  // namespace hvd::agent
