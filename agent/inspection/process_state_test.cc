#include "agent/inspection/process_state.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <vector>

#include "base/fd.h"
#include "base/os/process_tree.h"
#include "gtest/gtest.h"

namespace hvd::agent::inspection {
namespace {

TEST(ProcessStateTest, IsStopped_StoppedAndContinued_TellsThemApart) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, "a) S (b");
    for (;;) raise(SIGSTOP);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(IsStopped(child));
  EXPECT_FALSE(IsStopped(getpid()));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(IsStopped(child));
}

TEST(ProcessStateTest, EndOf_ZombieOnly) {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(EndOf(child)->exit_code, 7);
  EXPECT_EQ(EndOf(child)->signal, 0);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(EndOf(child).has_value());
  EXPECT_FALSE(EndOf(getpid()).has_value());
}

TEST(ProcessStateTest, IsExiting_NotReaped_IsSo) {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(IsExiting(child));
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(IsExiting(child));
  EXPECT_FALSE(IsExiting(getpid()));
}

TEST(ProcessStateTest, Catches_OfAUserInManyGroups) {
  Pipe ready = *MakePipe();
  const pid_t child = fork();
  if (child == 0) {
    std::vector<gid_t> groups(2000);
    std::iota(groups.begin(), groups.end(), 1000000);
    const bool is_allowed = setgroups(groups.size(), groups.data()) == 0;
    signal(SIGUSR1, [](int) {});
    (void)!write(ready.write.get(), is_allowed ? "y" : "n", 1);
    for (;;) pause();
  }
  char is_allowed = 'n';
  ASSERT_EQ(ReadSome(ready.read.get(), &is_allowed, 1).bytes, 1u);
  const bool usr1 = Catches(child, SIGUSR1);
  const bool usr2 = Catches(child, SIGUSR2);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(usr1);
  EXPECT_FALSE(usr2);
  if (is_allowed == 'n') GTEST_SKIP() << "only root may set groups";
}

TEST(ProcessStateTest, EndOf_Signal) {
  const pid_t child = fork();
  if (child == 0) pause();
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(EndOf(child)->signal, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(ProcessStateTest, Catches_HandlerOnly) {
  EXPECT_FALSE(Catches(getpid(), SIGRTMAX));
  signal(SIGRTMAX, [](int) {});
  EXPECT_TRUE(Catches(getpid(), SIGRTMAX));
  signal(SIGRTMAX, SIG_IGN);
  EXPECT_FALSE(Catches(getpid(), SIGRTMAX));
}

TEST(ProcessStateTest, CatchersOf_ReturnsTheGivenProcess) {
  const int catches = SIGRTMAX - 1;
  EXPECT_TRUE(CatchersOf(getpid(), catches).empty());
  Pipe ready = *MakePipe();
  const pid_t shell = fork();
  if (shell == 0) {  // has no handler; its child has one, and so has what that one forks
    const pid_t script = fork();
    if (script == 0) {
      signal(SIGRTMAX - 1, [](int) {});
      if (fork() == 0) pause();
      const pid_t own = getpid();
      if (write(ready.write.get(), &own, sizeof(own)) != sizeof(own)) _exit(1);
    }
    for (;;) pause();
  }
  pid_t script = 0;
  ASSERT_EQ(read(ready.read.get(), &script, sizeof(script)), static_cast<ssize_t>(sizeof(script)));
  EXPECT_EQ(CatchersOf(shell, catches), std::vector<pid_t>{script});
  EXPECT_EQ(CatchersOf(script, catches), std::vector<pid_t>{script});
  for (const pid_t child : os::ChildrenOf(script)) kill(child, SIGKILL);
  kill(script, SIGKILL);
  kill(shell, SIGKILL);
  waitpid(shell, nullptr, 0);
}

}  // namespace
}  // namespace hvd::agent::inspection
