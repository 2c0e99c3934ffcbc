// Tests of the whole program with an adopted process; only the daemon is scripted.
#include <csignal>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/testing/joining_program.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

constexpr char kScriptedAgent[] = "agent/testing/scripted_agent";
constexpr char kPageHolder[] = "agent/testing/page_holder";
// A program that starts its agent, prints its process number and keeps running. The test writes its
// lines to the agent and reads the agent's lines.
constexpr char kAdoptee[] =
    "exec 3<&0; \"$0\" \"$@\" --adopt $$ <&3 & agent=$!; exec >&- 3<&- <&-; wait $agent; code=$?; "
    "echo agent $code >&2; exec sleep 1000";

class AdoptedProgramTest : public testing::Test {
 protected:
  AdoptedProgramTest() { signal(SIGPIPE, SIG_IGN); }

  // A shell that is adopted.
  void StartAdoptee(const std::vector<std::string>& more = {}) {
    Spawn("/bin/sh", {"sh", "-c", kAdoptee, kScriptedAgent}, more);
  }
  void Spawn(const std::string& file, const std::vector<std::string>& argv,
             const std::vector<std::string>& more) {
    auto [process, in, out, err] = SpawnJoining(file, argv, daemon_, token_, more);
    process_.emplace(std::move(process));
    in_ = std::move(in);
    out_ = std::move(out);
    err_ = std::move(err);
  }
  void Say(const std::string& line) { WriteAll(in_.get(), line).IgnoreError(); }
  // The value of a variable in a start line.
  static std::string ValueIn(const std::string& line, const std::string& name) {
    std::smatch found;
    const std::regex variable("\"" + name + "\":\"([^\"]*)\"");
    return std::regex_search(line, found, variable) ? found[1].str() : "";
  }
  // The agent's answer to a worker's request for its bootstrap. The worker is a child of this
  // process.
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

  const BoundSocket listener_{8};
  std::string daemon_ = listener_.address();
  const TokenFile token_{"adopted_program_test_token"};
  std::optional<os::Process> process_;
  Fd in_, out_, err_;
};

TEST_F(AdoptedProgramTest, Job_Ends_TheProcessLivesOn) {
  StartAdoptee({"--host", "h"});
  const std::string start = ReadLine(out_);
  EXPECT_TRUE(absl::StartsWith(start, "{\"start\":{")) << start;
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

TEST_F(AdoptedProgramTest, Bootstrap_Descendant_GetsTheCredentials) {
  Spawn(kScriptedAgent, {"horovod-agent", "--adopt", absl::StrCat(getpid())},
        {"--host", "elastic"});
  const std::string start = ReadLine(out_);
  const std::string answer = Ask(start, "answer");
  EXPECT_TRUE(absl::StartsWith(answer, absl::StrCat(token_.token(), " elastic "))) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "page 1 arena 1 stack 1")) << answer;
  Say("{\"exit\": 0}\n");
  EXPECT_EQ(process_->Wait().exit_code, 0);
}

TEST_F(AdoptedProgramTest, Bootstrap_OtherProcessWithTheSecret_IsRefused) {
  StartAdoptee();
  const std::string answer = Ask(ReadLine(out_), "answer");
  EXPECT_TRUE(absl::StartsWith(answer, "this process was not started by worker 1")) << answer;
}

TEST_F(AdoptedProgramTest, Sigterm_ToTheAgentOfAnElasticJob_ProcessIsNotified) {
  Spawn(kScriptedAgent, {"horovod-agent", "--adopt", absl::StrCat(getpid())},
        {"--host", "elastic"});
  ReadLine(out_);
  process_->Signal(SIGTERM);
  EXPECT_EQ(ReadLine(out_), "{\"stop\":5}\n");
  Say("{\"exit\": 0}\n");
  EXPECT_EQ(process_->Wait().exit_code, 0);
}

TEST_F(AdoptedProgramTest, Sigint_ToTheAgent_ProcessIsNotifiedAndSurvives) {
  Spawn(kScriptedAgent, {"horovod-agent", "--adopt", absl::StrCat(getpid())}, {});
  ReadLine(out_);
  process_->Signal(SIGINT);
  EXPECT_EQ(ReadLine(out_), "{\"stop\":5}\n");
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
  // No one accepts connections: the agent is still searching for the daemon.
  const BoundSocket deaf;
  daemon_ = deaf.address();
  StartAdoptee({"--start-timeout", "600"});
  process_->Signal(SIGKILL);
  EXPECT_EQ(ReadLine(out_), "");
}

TEST_F(AdoptedProgramTest, Refusal_IsReportedToTheProcess) {
  StartAdoptee({"--network-interfaces", "203.0.113.0/24"});
  EXPECT_TRUE(absl::StrContains(ReadLine(out_), "{\"error\":"));
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
  options.argv = {"horovod-agent",       "--join",      daemon_,
                  "--token-file",        token_.path(), "--adopt",
                  absl::StrCat(getpid())};
  options.stderr_fd = err.write.get();
  EXPECT_EQ(os::Process::Spawn(options)->Wait().exit_code, 2);
  EXPECT_TRUE(absl::StrContains(ReadLine(err.read), "stdin and stdout must be pipes"));
}

}  // namespace
}  // namespace hvd::agent
