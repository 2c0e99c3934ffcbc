#include "launcher/spawn/agent_command.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace hvd::launcher::spawn {
namespace {

bool Contains(const AgentInvocation& command, const std::string& argument) {
  return std::count(command.argv.begin(), command.argv.end(), argument) > 0;
}

AgentTarget Target(const std::string& host) {
  AgentTarget target;
  target.host = host;
  return target;
}

TEST(SshAgentCommandTest, Defaults_AsksNothingAndLeavesHostKeysToTheUser) {
  const AgentInvocation command = SshAgentCommand(Target("node7"), "/opt/hvd/bin");
  EXPECT_EQ(command.file, "ssh");
  EXPECT_TRUE(Contains(command, "BatchMode=yes"));
  EXPECT_TRUE(Contains(command, "ConnectTimeout=10"));
  EXPECT_TRUE(Contains(command, "ServerAliveInterval=5"));
  EXPECT_TRUE(Contains(command, "ServerAliveCountMax=3"));
  EXPECT_FALSE(Contains(command, "-p"));
  EXPECT_FALSE(Contains(command, "-i"));
  for (const std::string& argument : command.argv) {
    EXPECT_EQ(argument.find("StrictHostKeyChecking"), std::string::npos);
  }
  EXPECT_EQ(command.argv[command.argv.size() - 2], "node7");
  EXPECT_EQ(command.argv.back(),
            "sh -c 'PATH=/opt/hvd/bin:\"$PATH\"; export PATH; exec horovod-agent --stdio'");
}

TEST(SshAgentCommandTest, PortAndIdentity_ArePassedOn) {
  AgentTarget target = Target("node7");
  target.ssh = {2222, "/keys/my key", 3};
  const AgentInvocation command = SshAgentCommand(target, "");
  const auto port = std::find(command.argv.begin(), command.argv.end(), "-p");
  ASSERT_NE(port, command.argv.end());
  EXPECT_EQ(*(port + 1), "2222");
  EXPECT_TRUE(Contains(command, "/keys/my key"));
  EXPECT_TRUE(Contains(command, "ConnectTimeout=3"));
  EXPECT_EQ(command.argv.back(), "sh -c 'exec horovod-agent --stdio'");
}

TEST(SshAgentCommandTest, HostLikeAnOption_StaysAHost) {
  const AgentInvocation command = SshAgentCommand(Target("-oProxyCommand=evil"), "");
  EXPECT_EQ(command.argv[command.argv.size() - 3], "--");
}

TEST(LocalAgentCommandTest, NoAgentBeside_LooksInPath) {
  EXPECT_EQ(LocalAgentCommand("/nonexistent").file, "horovod-agent");
}

TEST(OwnDirectoryTest, OwnDirectory_Always_IsAbsolute) { EXPECT_EQ(OwnDirectory()[0], '/'); }

}  // namespace
}  // namespace hvd::launcher::spawn
