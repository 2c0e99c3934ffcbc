#include "base/os/signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace hvd::os {
namespace {

// The wait status of a child that runs `body`.
template <typename Body>
int EndOfChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(NoticeSignalsTest, AreThoseOfSchedulers) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGXCPU}) EXPECT_TRUE(IsNotice(signal));
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) EXPECT_FALSE(IsNotice(signal));
}

TEST(NoticeSignalsTest, Blocked_ArePending_EvenIfTheStarterIgnoredThem) {
  for (const int signal : kNoticeSignals) {
    EXPECT_EQ(EndOfChild([signal] {
                IgnoreNotices();
                BlockNotices();
                raise(signal);
                sigset_t pending;
                sigpending(&pending);
                if (sigismember(&pending, signal) != 1) _exit(1);
              }),
              0)
        << signal;
  }
}

TEST(NoticeSignalsTest, Ignored_EndNothing) {
  for (const int signal : kNoticeSignals) {
    EXPECT_EQ(EndOfChild([signal] {
                IgnoreNotices();
                raise(signal);
              }),
              0)
        << signal;
  }
}

TEST(IgnoredSignalsTest, AddUnlessIgnored_OneIsIgnored_AddsTheOther) {
  signal(SIGHUP, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGHUP, SIGTERM}) AddUnlessIgnored(set, number);
  EXPECT_TRUE(IsIgnored(SIGHUP));
  signal(SIGHUP, SIG_DFL);
  EXPECT_FALSE(IsIgnored(SIGHUP));
  EXPECT_EQ(sigismember(&set, SIGHUP), 0);
  EXPECT_EQ(sigismember(&set, SIGTERM), 1);
}

}  // namespace
}  // namespace hvd::os
