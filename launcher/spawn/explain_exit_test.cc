#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "launcher/spawn/agent_process.h"
#include "launcher/spawn/command_launcher.h"
#include "launcher/spawn/local_launcher.h"
#include "launcher/spawn/ssh_launcher.h"

namespace hvd::launcher::spawn {
namespace {

struct Case {
  const char* name;
  AgentExit exit;
  std::vector<std::string> expected;  // each is in the explanation
};

class ExplainEarlyExitTest : public testing::TestWithParam<Case> {};

TEST_P(ExplainEarlyExitTest, Remote_NamesHostCauseAndRemedyInOneLine) {
  AgentTarget target;
  target.host = "node7";
  target.launcher = std::make_shared<SshLauncher>(SshOptions());
  const std::string text = ExplainEarlyExit(target, GetParam().exit);
  EXPECT_EQ(text.rfind("node7: ", 0), 0u) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  for (const std::string& part : GetParam().expected) {
    EXPECT_NE(text.find(part), std::string::npos) << text << " lacks " << part;
  }
}

const Case kCases[] = {
    {"UnknownKey",
     {255, 0,
      "No ED25519 host key is known for node7 and you have requested strict checking.\r\n"
      "Host key verification failed.\r\n"},
     {"'ssh node7'", "Host key verification failed."}},
    {"ChangedKey",
     {255, 0,
      "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification "
      "failed.\n"},
     {"ssh-keygen -R node7"}},
    {"WrongKey",
     {255, 0, "root@node7: Permission denied (publickey).\r\n"},
     {"--ssh-identity-file", "Permission denied (publickey)."}},
    {"TooManyKeys",
     {255, 0, "Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures\n"},
     {"--ssh-identity-file"}},
    {"NoSuchName",
     {255, 0, "ssh: Could not resolve hostname node7: Name or service not known\r\n"},
     {"spelling", "Could not resolve hostname node7: Name or service not known"}},
    {"Refused",
     {255, 0, "ssh: connect to host node7 port 22: Connection refused\r\n"},
     {"--ssh-port", "port 22: Connection refused"}},
    {"TimedOut",
     {255, 0, "ssh: connect to host node7 port 22: Connection timed out\r\n"},
     {"firewall", "Connection timed out"}},
    {"NoRoute",
     {255, 0, "ssh: connect to host node7 port 22: No route to host\r\n"},
     {"can't be reached", "No route to host"}},
    {"Unreachable",
     {255, 0, "ssh: connect to host node7 port 22: Network is unreachable\n"},
     {"no network route"}},
    {"Overloaded",
     {255, 0, "kex_exchange_identification: Connection closed by remote host\r\n"},
     {"MaxStartups"}},
    {"NotInstalled",
     {127, 0, "sh: 1: exec: horovod-agent: not found\n"},
     {"horovod-agent was not found", "install", "exec: horovod-agent: not found"}},
    {"NotExecutable", {126, 0, "horovod-agent: Permission denied\n"}, {"can't be executed"}},
    {"Crash", {139, 0, "Segmentation fault\n"}, {"exited with code 139", "Segmentation fault"}},
    {"Killed", {0, 9, ""}, {"killed by signal 9"}},
    {"NoLogin",
     {1, 0, "This account is currently not available.\n"},
     {"This account is currently not available."}},
};

INSTANTIATE_TEST_SUITE_P(Table, ExplainEarlyExitTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ExplainEarlyExitCommandTest, OtherLauncher_IsNamedInPlaceOfSsh) {
  AgentTarget target;
  target.host = "node7";
  target.launcher = std::make_shared<CommandLauncher>(FindCommandTemplate("blaunch").value(), "",
                                                      std::map<std::string, int>());
  EXPECT_EQ(ExplainEarlyExit(target, {255, 0, "Host node7 is not in the allocation\n"}),
            "node7: the blaunch session exited with code 255 before the host was ready: Host node7 "
            "is not in the allocation");
}

TEST(ExplainEarlyExitCommandTest, ControlCharacters_AreEscaped) {
  AgentTarget target;
  target.host = "node7";
  target.launcher = std::make_shared<CommandLauncher>(FindCommandTemplate("blaunch").value(), "",
                                                      std::map<std::string, int>());
  EXPECT_EQ(ExplainEarlyExit(target, {1, 0, "\x1b]0;title\a denied\n"}),
            "node7: the blaunch session exited with code 1 before the host was ready: "
            "\\x1b]0;title\\x07 denied");
}

TEST(ExplainEarlyExitLocalTest, Local_SaysNothingOfSsh) {
  AgentTarget target;
  target.host = "localhost";
  target.local = true;
  target.launcher = std::make_shared<LocalLauncher>();
  const std::string text = ExplainEarlyExit(target, {1, 0, "cannot open /proc\n"});
  EXPECT_EQ(
      text,
      "localhost: horovod-agent exited with code 1 before the host was ready: cannot open /proc");
}

}  // namespace
}  // namespace hvd::launcher::spawn
