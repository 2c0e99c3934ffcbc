#include "agent/guard.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

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

TEST(GuardTest, RunGuard_AgentStoppedForGood_KillsIt) {
  EXPECT_EQ(GuardOf("kill -STOP $$; exit 7", absl::Milliseconds(10)), 128 + SIGKILL);
}

TEST(GuardTest, RunGuard_AgentContinuedInTime_LetsItGoOn) {
  constexpr char kContinuedOnceStopped[] =
      "(until grep -q '^State:.T' /proc/$$/status; do :; done; kill -CONT $$) & "
      "kill -STOP $$; exit 7";
  EXPECT_EQ(GuardOf(kContinuedOnceStopped), 7);
}

}  // namespace
}  // namespace hvd::agent
