// A worker thread that runs tasks in order.
#ifndef BASE_TASK_THREAD_H_
#define BASE_TASK_THREAD_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace hvd {

// Thread-safe. The thread blocks all signals. The destructor first runs the remaining tasks.
//
// A forked child has a copy of the object without the thread, and possibly with the lock held: it
// may only call BelongsToThisProcess, and must leak the object.
class TaskThread {
 public:
  TaskThread();
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Runs `task` after all tasks that were added before. Does not wait for it. Tasks may add tasks.
  void Add(std::function<void()> task);
  // Waits until all tasks that were added before this call have run.
  // REQUIRES: the caller is not a task.
  void Drain();

  // Whether the caller is a task.
  bool IsCurrent() const { return std::this_thread::get_id() == thread_.get_id(); }
  bool BelongsToThisProcess() const { return getpid() == process_; }

 private:
  void Run();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stops_ || !tasks_.empty(); }

  const pid_t process_ = getpid();
  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace hvd

#endif  // BASE_TASK_THREAD_H_
