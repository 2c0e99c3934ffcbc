#include "base/task_thread.h"

#include <sys/wait.h>

#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(TaskThreadTest, Add_FromSeveralThreads_RunsEachOnceInEachThreadsOrder) {
  constexpr int kThreads = 4, kTasks = 200;
  std::vector<std::vector<int>> ran(kThreads);
  TaskThread tasks;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kTasks; ++i) tasks.Add([&ran, thread, i] { ran[thread].push_back(i); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  tasks.Drain();
  for (const std::vector<int>& of_thread : ran) {
    ASSERT_EQ(of_thread.size(), kTasks);
    for (int i = 0; i < kTasks; ++i) EXPECT_EQ(of_thread[i], i);
  }
}

TEST(TaskThreadTest, Drain_TaskKeepsAddingItself_ReturnsAfterThoseThatWereThere) {
  TaskThread tasks;
  absl::Notification enough;
  int count = 0;
  std::function<void()> again = [&] {
    ++count;
    if (!enough.HasBeenNotified()) tasks.Add(again);
  };
  tasks.Add(again);
  tasks.Drain();
  enough.Notify();
  tasks.Drain();
  EXPECT_GE(count, 1);
}

TEST(TaskThreadTest, Drain_ReturnsWhenWhatTheTaskHoldsIsGone) {
  TaskThread tasks;
  auto held = std::make_shared<int>(1);
  tasks.Add([copy = held] {});
  tasks.Drain();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(TaskThreadTest, Destructor_RunsAddedTasks) {
  int count = 0;
  {
    TaskThread tasks;
    for (int i = 0; i < 100; ++i) tasks.Add([&] { ++count; });
  }
  EXPECT_EQ(count, 100);
}

TEST(TaskThreadTest, IsCurrent_OnlyWithinATask) {
  TaskThread tasks;
  bool within = false;
  tasks.Add([&] { within = tasks.IsCurrent(); });
  tasks.Drain();
  EXPECT_TRUE(within);
  EXPECT_FALSE(tasks.IsCurrent());
}

TEST(TaskThreadTest, BelongsToThisProcess_ForkedChild_DoesNot) {
  auto* const tasks = new TaskThread;
  EXPECT_TRUE(tasks->BelongsToThisProcess());
  const pid_t child = fork();
  if (child == 0) _exit(tasks->BelongsToThisProcess() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  delete tasks;
}

}  // namespace
}  // namespace hvd
