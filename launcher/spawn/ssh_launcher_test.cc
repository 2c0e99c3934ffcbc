#include "launcher/spawn/ssh_launcher.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace hvd::launcher::spawn {
namespace {

bool Contains(const AgentInvocation& command, const std::string& argument) {
  return std::count(command.argv.begin(), command.argv.end(), argument) > 0;
}

TEST(SshLauncherTest, Defaults_AsksNothingAndLeavesHostKeysToTheUser) {
  const AgentInvocation command = SshLauncher(SshOptions()).Command("node7", "/opt/hvd/bin");
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

TEST(SshLauncherTest, PortAndIdentity_ArePassedOn) {
  const AgentInvocation command = SshLauncher({2222, "/keys/my key", 3}).Command("node7", "");
  const auto port = std::find(command.argv.begin(), command.argv.end(), "-p");
  ASSERT_NE(port, command.argv.end());
  EXPECT_EQ(*(port + 1), "2222");
  EXPECT_TRUE(Contains(command, "/keys/my key"));
  EXPECT_TRUE(Contains(command, "ConnectTimeout=3"));
  EXPECT_EQ(command.argv.back(), "sh -c 'exec horovod-agent --stdio'");
}

TEST(SshLauncherTest, HostLikeAnOption_StaysAHost) {
  const AgentInvocation command = SshLauncher(SshOptions()).Command("-oProxyCommand=evil", "");
  EXPECT_EQ(command.argv[command.argv.size() - 3], "--");
}

}  // namespace
}  // namespace hvd::launcher::spawn
