#include "base/signal_free_thread.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace hvd {
namespace {

sigset_t MaskOfThisThread() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

TEST(StartSignalFreeThreadTest, TheThread_TakesNoSignalsButFaults) {
  sigset_t mask;
  sigemptyset(&mask);
  StartSignalFreeThread([&mask] { mask = MaskOfThisThread(); }).join();
  for (int signal : {SIGINT, SIGTERM, SIGCHLD, SIGPIPE}) EXPECT_TRUE(sigismember(&mask, signal));
  for (int signal : {SIGSEGV, SIGABRT}) EXPECT_FALSE(sigismember(&mask, signal));
}

TEST(StartSignalFreeThreadTest, TheStarter_KeepsItsSignals) {
  const sigset_t before = MaskOfThisThread();
  StartSignalFreeThread([] {}).join();
  const sigset_t after = MaskOfThisThread();
  EXPECT_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

}  // namespace
}  // namespace hvd
