#include "worker_runtime/commit_store/thread_team.h"

#include <algorithm>

#include "base/signal_free_thread.h"

namespace hvd::worker_runtime::commit_store {

ThreadTeam::ThreadTeam() { sem_init(&wanted_, /*pshared=*/0, 0); }

ThreadTeam::~ThreadTeam() {
  absl::MutexLock turn(&turn_);
  {
    absl::MutexLock lock(&mutex_);
    stops_ = true;
  }
  for (size_t i = 0; i < threads_.size(); ++i) sem_post(&wanted_);
  for (std::thread& thread : threads_) thread.join();
  sem_destroy(&wanted_);
}

void ThreadTeam::Share(Work& work) {
  for (size_t i; (i = work.next.fetch_add(1, std::memory_order_relaxed)) < work.count;) {
    work.item(i);
  }
}

void ThreadTeam::StartThreads(size_t count) {
  while (threads_.size() < count) threads_.push_back(StartSignalFreeThread([this] { Help(); }));
}

void ThreadTeam::Run(int threads, size_t count, absl::FunctionRef<void(size_t)> item) {
  Work work{count, item};
  const size_t most = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  if (most <= 1 || getpid() != process_) return Share(work);
  absl::MutexLock turn(&turn_);
  StartThreads(most - 1);
  {
    absl::MutexLock lock(&mutex_);
    work_ = &work;
  }
  for (size_t i = 1; i < most; ++i) sem_post(&wanted_);
  Share(work);
  // A thread that wakes up after this finds no work, and sleeps again.
  absl::MutexLock lock(&mutex_);
  work_ = nullptr;
  mutex_.Await(absl::Condition(this, &ThreadTeam::IsAlone));
}

void ThreadTeam::Help() {
  while (true) {
    while (sem_wait(&wanted_) != 0) {
    }
    Work* work = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      if (stops_) return;
      if (work_ == nullptr) continue;
      work = work_;
      ++helping_;
    }
    Share(*work);
    absl::MutexLock lock(&mutex_);
    --helping_;
  }
}

}  // namespace hvd::worker_runtime::commit_store
