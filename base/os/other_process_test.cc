#include "base/os/other_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

Process Sleeper() {
  SpawnOptions options;
  options.file = "sleep";
  options.argv = {"sleep", "1000"};
  return Process::Spawn(options).value();
}

TEST(OtherProcessTest, HasEnded_LivesThenIsAZombieThenReaped_TellsItApart) {
  Process process = Sleeper();
  const OtherProcess other = OtherProcess::Open(process.pid()).value();
  EXPECT_EQ(other.pid(), process.pid());
  EXPECT_FALSE(other.HasEnded());
  ASSERT_TRUE(other.Signal(SIGKILL));
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(other.HasEnded());
  process.Wait();
  EXPECT_TRUE(other.HasEnded());
  EXPECT_FALSE(other.Signal(SIGKILL));
}

TEST(OtherProcessTest, Open_NoSuchProcess_IsNotFound) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  EXPECT_TRUE(absl::IsNotFound(OtherProcess::Open(gone).status()));
  EXPECT_TRUE(absl::IsNotFound(OtherProcess::Open(0).status()));
}

}  // namespace
}  // namespace hvd::os
