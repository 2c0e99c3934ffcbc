#include "agent/guard.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

// The exit code of a guard in a separate process, whose agent runs the script.
int GuardOf(const char* script, absl::Duration stopped_patience = absl::Minutes(10)) {
  const pid_t guard = fork();
  if (guard == 0) {
    const auto agent = [script] {
      execl("/bin/sh", "agent", "-c", script, nullptr);
      return 1;
    };
    _exit(RunGuard(agent, stopped_patience));
  }
  int status = 0;
  EXPECT_EQ(waitpid(guard, &status, 0), guard);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(GuardTest, RunGuard_AgentEnds_ReturnsItsCode) { EXPECT_EQ(GuardOf("exit 7"), 7); }

// What ends neither of them, as a scheduler's notice to the guard alone.
TEST(GuardTest, RunGuard_Notice_IsPassedOn) {
  for (const char* name : {"USR1", "USR2", "XCPU"}) {
    const std::string script = absl::StrCat("trap 'exit 7' ", name, "; kill -", name,
                                            " $PPID; while :; do sleep 0.01; done");
    EXPECT_EQ(GuardOf(script.c_str()), 7) << name;
  }
}

// The guard would pass on SIGHUP before SIGUSR1, whose number is higher.
TEST(GuardTest, RunGuard_HangupIgnored_StaysSoInBoth) {
  signal(SIGHUP, SIG_IGN);
  const int code = GuardOf(
      "trap 'exit 7' USR1; kill -HUP $$ $PPID; kill -USR1 $PPID; while :; do sleep 0.01; done");
  signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(code, 7);
}

TEST(GuardTest, RunGuard_AgentStoppedForGood_KillsIt) {
  EXPECT_EQ(GuardOf("kill -STOP $$; exit 7", absl::Milliseconds(10)), 128 + SIGKILL);
}

// As after the end of horovodrun, which reads it.
TEST(GuardTest, RunGuard_StderrIsNotRead_StillKillsTheStoppedAgent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[0]);
  close(ends[1]);
  const int code = GuardOf("kill -STOP $$; exit 7", absl::Milliseconds(10));
  dup2(before, STDERR_FILENO);
  close(before);
  EXPECT_EQ(code, 128 + SIGKILL);
}

TEST(GuardTest, RunGuard_AgentContinuedInTime_LetsItGoOn) {
  constexpr char kContinuedOnceStopped[] =
      "(until grep -q '^State:.T' /proc/$$/status; do :; done; kill -CONT $$) & "
      "kill -STOP $$; exit 7";
  EXPECT_EQ(GuardOf(kContinuedOnceStopped), 7);
}

}  // namespace
}  // namespace hvd::agent
