#include "launcher/spawn/local_launcher.h"

#include "gtest/gtest.h"

namespace hvd::launcher::spawn {
namespace {

TEST(LocalLauncherTest, Command_NoAgentBeside_LooksInPath) {
  EXPECT_EQ(LocalLauncher().Command("any", "/nonexistent").file, "horovod-agent");
}

}  // namespace
}  // namespace hvd::launcher::spawn
