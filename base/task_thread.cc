#include "base/task_thread.h"

#include <utility>

#include "base/signal_free_thread.h"

namespace hvd {

TaskThread::TaskThread() : thread_(StartSignalFreeThread([this] { Run(); })) {}

TaskThread::~TaskThread() {
  {
    absl::MutexLock lock(&mutex_);
    stops_ = true;
  }
  thread_.join();
}

void TaskThread::Add(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  ++added_;
}

void TaskThread::Drain() {
  absl::MutexLock lock(&mutex_);
  // Waits for a count, not for an empty queue, since other threads may add tasks continuously.
  const auto all_ran = [this, last = added_]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return finished_ >= last; };
  mutex_.Await(absl::Condition(&all_ran));
}

void TaskThread::Run() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &TaskThread::HasWork));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    task = nullptr;  // releases its captures before it counts as finished
    absl::MutexLock lock(&mutex_);
    ++finished_;
  }
}

}  // namespace hvd
