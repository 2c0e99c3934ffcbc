#include "worker_runtime/commit_store/thread_team.h"

#include <sys/wait.h>

#include <memory>
#include <set>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::commit_store {
namespace {

TEST(ThreadTeamTest, Run_AnyCount_CallsEachItemOnce) {
  ThreadTeam team;
  for (const int threads : {1, 4, 2, 0}) {
    for (size_t count : {0, 1, 2, 3, 100, 10000}) {
      std::unique_ptr<std::atomic<int>[]> calls(new std::atomic<int>[count]());
      team.Run(threads, count, [&](size_t i) { ++calls[i]; });
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(calls[i], 1) << i << " of " << count;
    }
  }
}

// Items that wait for each other end only if they run at the same time.
TEST(ThreadTeamTest, Run_SeveralThreads_RunAtTheSameTime) {
  ThreadTeam team;
  for (int round = 0; round < 100; ++round) {
    absl::Mutex mutex;
    int present = 0;
    team.Run(4, 4, [&](size_t) {
      absl::MutexLock lock(&mutex);
      ++present;
      const auto all_are_here = [&] { return present == 4; };
      mutex.Await(absl::Condition(&all_are_here));
    });
  }
}

TEST(ThreadTeamTest, Run_ByOneThread_StaysOnTheCallers) {
  ThreadTeam team;
  team.Run(1, 5, [self = std::this_thread::get_id()](size_t) {
    EXPECT_EQ(std::this_thread::get_id(), self);
  });
}

TEST(ThreadTeamTest, Run_ByManyCallers_KeepsTheirWorkApart) {
  ThreadTeam team;
  std::atomic<int> done{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int> calls{0};
        team.Run(3, 10, [&](size_t) { ++calls; });
        if (calls == 10) ++done;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done, 600);
}

TEST(ThreadTeamTest, Run_InAForkedChild_IsDoneByTheCaller) {
  ThreadTeam team;
  team.Run(3, 3, [](size_t) {});
  const pid_t child = fork();
  if (child == 0) {
    int calls = 0;
    team.Run(3, 7, [&](size_t) { ++calls; });
    _exit(calls);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace hvd::worker_runtime::commit_store
