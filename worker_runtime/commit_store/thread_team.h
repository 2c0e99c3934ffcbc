// Threads that share one piece of work with the caller, such as a large copy.
#ifndef WORKER_RUNTIME_COMMIT_STORE_THREAD_TEAM_H_
#define WORKER_RUNTIME_COMMIT_STORE_THREAD_TEAM_H_

#include <semaphore.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace hvd::worker_runtime::commit_store {

// Thread-safe: callers take turns. The threads start when they are needed first, sleep between two
// calls, and block all signals. In a forked child, which has none of them, the caller does all the
// work; the child must leak the object.
class ThreadTeam {
 public:
  ThreadTeam();
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Calls item(i) once for each i below `count`, in any order, on at most `threads` threads, one of
  // which is the caller's. Returns when all calls have returned. `item` must not throw, nor call
  // Run.
  void Run(int threads, size_t count, absl::FunctionRef<void(size_t)> item);

 private:
  struct Work {
    const size_t count;
    const absl::FunctionRef<void(size_t)> item;
    std::atomic<size_t> next{0};
  };

  // Takes items until none is left.
  static void Share(Work& work);
  void Help();
  void StartThreads(size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  bool IsAlone() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return helping_ == 0; }

  const pid_t process_ = getpid();
  absl::Mutex turn_;  // held by the caller whose work it is
  // One post for each thread that is wanted. A semaphore wakes them at once, while a condition of a
  // mutex would wake one after the other.
  sem_t wanted_;
  absl::Mutex mutex_;
  Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int helping_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that are in work_
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(turn_);
};

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_THREAD_TEAM_H_
