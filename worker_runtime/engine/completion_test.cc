#include "worker_runtime/engine/completion.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

TEST(CompletionTest, WaitFor_NotNotified_TimesOut) {
  Completion completion;
  EXPECT_FALSE(completion.done());
  EXPECT_FALSE(completion.WaitFor(absl::Milliseconds(1)));
  EXPECT_FALSE(completion.WaitFor(absl::ZeroDuration()));
}

TEST(CompletionTest, Notify_WakesAllWaitersAndPublishes) {
  for (int round = 0; round < 100; ++round) {
    Completion completion;
    int value = 0;
    std::vector<std::thread> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&, i] {
        if (i == 0) {
          EXPECT_TRUE(completion.WaitFor(absl::Seconds(60)));
        } else {
          completion.Wait();
        }
        EXPECT_EQ(value, 42);
      });
    }
    value = 42;
    completion.Notify();
    for (std::thread& waiter : waiters) waiter.join();
    EXPECT_TRUE(completion.done());
    EXPECT_TRUE(completion.WaitFor(absl::ZeroDuration()));
  }
}

TEST(CompletionTest, WaitForOrSignal_ReturnsWhenThisThreadTakesASignal) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  Completion completion;
  std::atomic<bool> woken{false};
  // A signal before the wait does not end it.
  std::thread sender([&, waiter = pthread_self()] {
    while (!woken.load()) pthread_kill(waiter, SIGUSR1);
  });
  EXPECT_EQ(completion.WaitForOrSignal(absl::Seconds(600)), Completion::Woken::kBySignal);
  EXPECT_FALSE(completion.WaitFor(absl::Milliseconds(1))) << "and this goes on waiting";
  woken = true;
  sender.join();
  EXPECT_EQ(completion.WaitForOrSignal(absl::ZeroDuration()), Completion::Woken::kTimedOut);
  completion.Notify();
  EXPECT_EQ(completion.WaitForOrSignal(absl::ZeroDuration()), Completion::Woken::kDone);
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
