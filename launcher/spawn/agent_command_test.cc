#include "launcher/spawn/agent_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::spawn {
namespace {

using ::testing::ElementsAre;

TEST(AgentCommandTest, OfShell_PrefersTheInstallDirectory) {
  EXPECT_THAT(AgentCommandOfShell("/opt/my hvd"),
              ElementsAre("sh", "-c",
                          "PATH='/opt/my hvd':\"$PATH\"; export PATH; exec horovod-agent --stdio"));
  EXPECT_THAT(AgentCommandOfShell(""), ElementsAre("sh", "-c", "exec horovod-agent --stdio"));
}

TEST(AgentCommandTest, OfPlainWords_NothingMeansAnythingToAShell) {
  EXPECT_THAT(AgentCommandOfPlainWords("/opt/hvd/bin", "/usr/bin:/my $(dir):relative::/bin"),
              ElementsAre("env", "PATH=/opt/hvd/bin:/usr/bin:/bin", "horovod-agent", "--stdio"));
  EXPECT_THAT(AgentCommandOfPlainWords("", ""), ElementsAre("horovod-agent", "--stdio"));
}

}  // namespace
}  // namespace hvd::launcher::spawn
