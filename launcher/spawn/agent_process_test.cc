// Tests with the real horovod-agent, started directly or through a fake ssh.
#include "launcher/spawn/agent_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/fd.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "launcher/spawn/command_launcher.h"
#include "launcher/spawn/local_launcher.h"
#include "launcher/spawn/ssh_launcher.h"

namespace hvd::launcher::spawn {
namespace {

// The callbacks' reports so far.
class Log {
 public:
  AgentProcess::Callbacks Callbacks() {
    return {[this](const std::string&) { Note([this] { ready_ = true; }); },
            [this](const std::string& message) { Note([&] { refusal_ = message; }); },
            [this](pb::WorkerOutput output) { Note([&] { output_ += output.line(); }); },
            [this](const AgentExit& exit) { Note([&] { exit_ = exit; }); }};
  }
  void AwaitReady() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&ready_));
  }
  AgentExit AwaitExit() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](std::optional<AgentExit>* exit) { return exit->has_value(); }, &exit_));
    return *exit_;
  }
  std::string refusal() {
    absl::MutexLock lock(&mutex_);
    return refusal_;
  }
  bool ready() {
    absl::MutexLock lock(&mutex_);
    return ready_;
  }

 private:
  template <typename Change>
  void Note(const Change& change) {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(exit_.has_value()) << "a callback after the last one";
    change();
  }

  absl::Mutex mutex_;
  bool ready_ = false;
  std::string refusal_, output_;
  std::optional<AgentExit> exit_;
};

class AgentProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    char* const here = getcwd(nullptr, 0);
    agent_directory_ = absl::StrCat(here, "/agent");
    free(here);
    directory_ = testing::TempDir() + "/binXXXXXX";
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
    setenv("PATH", absl::StrCat(directory_, ":", agent_directory_, ":/usr/bin:/bin").c_str(), 1);
    target_.host = "node7";
    target_.local = true;
    target_.launcher = std::make_shared<LocalLauncher>();
    bootstrap_.set_version(kVersion);
    bootstrap_.set_host("node7");
    bootstrap_.mutable_credentials()->set_token("5ecret");
    bootstrap_.mutable_command()->add_argv("no-such-command");
    (*bootstrap_.mutable_command()->mutable_environment())["PATH"] = "/usr/bin:/bin";
  }

  // Puts a program of this name first in PATH.
  void Install(const std::string& name, const std::string& script) {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << "#!/bin/sh\n" << script;
    ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  }
  // Makes the bootstrap one that an agent accepts; its daemon listens and never answers.
  void MakeAcceptable() {
    listener_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    ASSERT_EQ(listen(listener_.get(), 8), 0);
    ASSERT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    bootstrap_.add_daemon_addresses(absl::StrCat("127.0.0.1:", ntohs(name.sin_port)));
    bootstrap_.mutable_command()->set_argv(0, "true");
  }
  void OverSsh() {
    target_.local = false;
    target_.launcher = std::make_shared<SshLauncher>(SshOptions());
  }
  std::unique_ptr<AgentProcess> Start() {
    return AgentProcess::Start(target_, bootstrap_, log_.Callbacks()).value();
  }

  std::string agent_directory_, directory_;
  AgentTarget target_;
  pb::AgentBootstrap bootstrap_;
  Fd listener_;
  Log log_;
};

TEST_F(AgentProcessTest, Start_CommandNotFound_IsARefusalAndExitCodeTwo) {
  const std::unique_ptr<AgentProcess> agent = Start();
  EXPECT_EQ(log_.AwaitExit().exit_code, 2);
  EXPECT_NE(log_.refusal().find("node7: command not found: no-such-command"), std::string::npos);
  EXPECT_FALSE(log_.ready());
}

TEST_F(AgentProcessTest, Start_Srun_DoesNotInheritTheTaskSettingsOfTheJob) {
  Install("srun", "echo \"has [$SLURM_GPUS_PER_TASK] [$SLURM_JOB_ID]\" >&2; exit 3");
  setenv("SLURM_GPUS_PER_TASK", "1", 1);
  setenv("SLURM_JOB_ID", "17", 1);
  target_.launcher = std::make_shared<CommandLauncher>(FindCommandTemplate("srun").value(), "",
                                                       std::map<std::string, int>());
  const std::unique_ptr<AgentProcess> agent = Start();
  EXPECT_EQ(log_.AwaitExit().stderr_text, "has [] [17]\n");
  unsetenv("SLURM_GPUS_PER_TASK");
  unsetenv("SLURM_JOB_ID");
}

TEST_F(AgentProcessTest, Start_HugeBootstrap_GetsThrough) {
  (*bootstrap_.mutable_command()->mutable_environment())["BIG"] = std::string(3 << 20, 'x');
  const std::unique_ptr<AgentProcess> agent = Start();
  EXPECT_EQ(log_.AwaitExit().exit_code, 2);
  EXPECT_NE(log_.refusal(), "");
}

TEST_F(AgentProcessTest, CloseInput_AgentReady_ItExits) {
  MakeAcceptable();
  const std::unique_ptr<AgentProcess> agent = Start();
  log_.AwaitReady();
  agent->CloseInput();
  EXPECT_EQ(log_.AwaitExit().exit_code, 1);
}

TEST_F(AgentProcessTest, Kill_AgentReady_EndsIt) {
  MakeAcceptable();
  const std::unique_ptr<AgentProcess> agent = Start();
  log_.AwaitReady();
  agent->Kill();
  EXPECT_EQ(log_.AwaitExit().signal, SIGKILL);
}

TEST_F(AgentProcessTest, Destructor_AgentReady_GivesTheLastCallbackFirst) {
  MakeAcceptable();
  std::unique_ptr<AgentProcess> agent = Start();
  log_.AwaitReady();
  agent.reset();
  EXPECT_EQ(log_.AwaitExit().signal, SIGKILL);
}

TEST_F(AgentProcessTest, Start_OtherVersionHere_AgentRefuses) {
  bootstrap_.set_version("0.1");
  const std::unique_ptr<AgentProcess> agent = Start();
  EXPECT_EQ(log_.AwaitExit().exit_code, 2);
  EXPECT_NE(log_.refusal().find("0.1"), std::string::npos);
}

// Frames are their length in four bytes, a message and a line end; 0x0a is the field `ready` or, in
// it, `version`.
TEST_F(AgentProcessTest, Start_OtherVersionThere_LauncherRefuses) {
  Install("horovod-agent",
          "printf '\\nHOROVOD-AGENT-FRAMES-1\\n\\0\\0\\0\\006\\012\\003\\012\\0019\\n'; cat "
          ">/dev/null");
  const std::unique_ptr<AgentProcess> agent = Start();
  log_.AwaitExit();
  EXPECT_NE(log_.refusal().find("node7: horovod-agent there is version 9"), std::string::npos)
      << log_.refusal();
  EXPECT_FALSE(log_.ready());
}

TEST_F(AgentProcessTest, Start_OtherProgramAnswers_ReturnsError) {
  Install("horovod-agent",
          "printf '\\nHOROVOD-AGENT-FRAMES-1\\nSegmentation fault'; cat >/dev/null");
  const std::unique_ptr<AgentProcess> agent = Start();
  log_.AwaitExit();
  EXPECT_NE(log_.refusal().find("node7: the program that answered there is not horovod-agent"),
            std::string::npos);
}

TEST_F(AgentProcessTest, Start_ProgramEndsAtOnce_ItsWordsAreKept) {
  Install("horovod-agent", "echo This account is not available.; echo bad luck >&2; exit 5");
  const std::unique_ptr<AgentProcess> agent = Start();
  const AgentExit exit = log_.AwaitExit();
  EXPECT_EQ(exit.exit_code, 5);
  EXPECT_NE(exit.stderr_text.find("This account is not available."), std::string::npos);
  EXPECT_NE(exit.stderr_text.find("bad luck"), std::string::npos);
}

TEST_F(AgentProcessTest, StartBySsh_RemoteShellPrintsText_AgentStillAnswers) {
  OverSsh();
  // Prints a greeting like a login shell, and runs the last argument as sshd does.
  Install("ssh",
          "echo Welcome to node7; echo motd >&2; for last; do :; done; exec sh -c \"$last\"");
  const std::unique_ptr<AgentProcess> agent = Start();
  EXPECT_EQ(log_.AwaitExit().exit_code, 2);
  EXPECT_NE(log_.refusal().find("no-such-command"), std::string::npos);
}

TEST_F(AgentProcessTest, StartBySsh_ArgumentsAndEnvironment_ShowNoSecret) {
  OverSsh();
  const std::string seen = absl::StrCat(directory_, "/seen");
  Install("ssh", absl::StrCat("{ echo \"$@\"; env; } >", seen, "; exit 255"));
  const std::unique_ptr<AgentProcess> agent = Start();
  EXPECT_EQ(log_.AwaitExit().exit_code, 255);
  std::ifstream file(seen);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("node7"), std::string::npos);
  EXPECT_EQ(text.find("5ecret"), std::string::npos);
}

TEST_F(AgentProcessTest, StartBySsh_NoAgentThere_IsExplained) {
  OverSsh();
  Install("ssh", "for last; do :; done; PATH=/nonexistent exec /bin/sh -c \"/bin/$last\"");
  setenv("PATH", absl::StrCat(directory_, ":/usr/bin:/bin").c_str(), 1);
  const std::unique_ptr<AgentProcess> agent = Start();
  const AgentExit exit = log_.AwaitExit();
  EXPECT_EQ(exit.exit_code, 127);
  EXPECT_NE(ExplainEarlyExit(target_, exit).find("node7: horovod-agent was not found there"),
            std::string::npos);
}

TEST_F(AgentProcessTest, StartBySsh_NoSshHere_IsNotFound) {
  OverSsh();
  setenv("PATH", "/nonexistent", 1);
  const absl::Status status = AgentProcess::Start(target_, bootstrap_, log_.Callbacks()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("ssh"), absl::string_view::npos);
}

}  // namespace
}  // namespace hvd::launcher::spawn
