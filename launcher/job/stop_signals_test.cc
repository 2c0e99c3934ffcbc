#include "launcher/job/stop_signals.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

TEST(StopSignalWatcher, TellsOfSignalsAndOtherwiseNothingHappens) {
  PrepareProcess();
  absl::Notification told;
  int signal = 0;
  auto watcher = StopSignalWatcher::Start([&](int s) {
    signal = s;
    told.Notify();
  });
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  kill(getpid(), SIGTERM);
  told.WaitForNotification();
  EXPECT_EQ(signal, SIGTERM);
}

// A scheduler's notice is reported and does not end the job, however often it comes.
TEST(StopSignalWatcher, TellsOfNotices) {
  PrepareProcess();
  for (const int notice : {SIGUSR1, SIGUSR2, SIGXCPU, SIGUSR1}) {
    absl::Notification told;
    int signal = 0;
    const auto watcher = StopSignalWatcher::Start([&](int s) {
      signal = s;
      told.Notify();
    });
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    kill(getpid(), notice);
    told.WaitForNotification();
    EXPECT_EQ(signal, notice);
  }
}

TEST(StopSignalWatcher, Start_EndOfTheGivenStreamIsReported) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  absl::Notification told;
  int signal = -1;
  auto watcher = StopSignalWatcher::Start(
      [&](int s) {
        signal = s;
        told.Notify();
      },
      fds[0]);
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  ASSERT_EQ(write(fds[1], "x", 1), 1);
  close(fds[1]);
  told.WaitForNotification();
  EXPECT_EQ(signal, kStreamHasEnded);
  watcher->reset();
  close(fds[0]);
}

TEST(StopSignalWatcher, Start_FileCanNotBeWatchedForItsEnd) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(StopSignalWatcher::Start([](int) {}, fd).ok());
  close(fd);
}

TEST(StopSignalWatcher, HangUpAfterAnotherSignal_IsIgnored) {
  PrepareProcess();
  std::vector<int> signals;
  absl::Notification told;
  const auto watcher = StopSignalWatcher::Start([&](int s) {
    signals.push_back(s);
    if (s == SIGTERM) told.Notify();
  });
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  kill(getpid(), SIGHUP);
  // A pending signal would swallow the next one.
  const auto wait_until_read = [] {
    for (sigset_t pending; sigpending(&pending) == 0 && sigismember(&pending, SIGHUP) == 1;)
      sched_yield();
  };
  wait_until_read();
  kill(getpid(), SIGHUP);
  wait_until_read();
  kill(getpid(), SIGTERM);
  told.WaitForNotification();
  EXPECT_EQ(signals, (std::vector<int>{SIGHUP, SIGTERM}));
}

// The watcher ends the process even if the receiver of the signals hangs.
TEST(StopSignalWatcher, SecondSignal_ProcessIsBlocked_StillEnds) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    PrepareProcess();
    const auto watcher = StopSignalWatcher::Start([](int) {});
    if (write(ends[1], "!", 1) != 1) _exit(1);
    absl::Notification never;
    never.WaitForNotification();
  }
  close(ends[1]);
  char c = 0;
  ASSERT_EQ(read(ends[0], &c, 1), 1);
  kill(child, SIGINT);
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  close(ends[0]);
}

// Evaluates `holds` in a child process; returns the child's wait status, 0 if it holds.
int InChild(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGINT, SIG_DFL);
    _exit(holds() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(PrepareProcess, IgnoredSignalsStayIgnored) {
  EXPECT_EQ(InChild([] {
              std::signal(SIGHUP, SIG_IGN);
              PrepareProcess();
              sigset_t blocked;
              pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
              return sigismember(&blocked, SIGHUP) == 0 && sigismember(&blocked, SIGINT) == 1;
            }),
            0);
}

TEST(PrepareProcess, ClosedStandardStreamsAreFilled) {
  EXPECT_EQ(InChild([] {
              close(0);
              close(1);
              close(2);
              PrepareProcess();
              const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
              return next > 2 && fcntl(1, F_GETFD) >= 0;
            }),
            0);
}

TEST(PrepareProcess, WritingWithoutReaderRaisesNoSignal) {
  EXPECT_EQ(InChild([] {
              PrepareProcess();
              int fds[2];
              if (pipe2(fds, O_CLOEXEC) != 0) return false;
              close(fds[0]);
              return write(fds[1], "x", 1) == -1;
            }),
            0);
}

}  // namespace
}  // namespace hvd::launcher::job
