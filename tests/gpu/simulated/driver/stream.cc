#include "tests/gpu/simulated/driver/stream.h"

#include <pthread.h>
#include <signal.h>

#include <thread>  // NOLINT: a stream's
#include <utility>

namespace simulated_gpu {

void Mark::Happen() {
  const std::lock_guard<std::mutex> lock(mutex_);
  happened_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Mark::Await() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return happened_; });
}

bool Mark::happened() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return happened_;
}

std::chrono::steady_clock::time_point Mark::time() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return time_;
}

std::shared_ptr<Stream> Stream::Start(int device) {
  std::shared_ptr<Stream> stream(new Stream(device));
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([stream] { stream->Run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return stream;
}

void Stream::Enqueue(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(work));
  ++enqueued_;
  changed_.notify_all();
}

void Stream::Synchronize() {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t so_far = enqueued_;
  changed_.wait(lock, [&] { return done_ >= so_far; });
}

bool Stream::IsIdle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return done_ == enqueued_;
}

void Stream::Release() {
  const std::lock_guard<std::mutex> lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

// Empty: the end.
std::function<void()> Stream::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !queue_.empty() || released_; });
  if (queue_.empty()) return nullptr;
  std::function<void()> work = std::move(queue_.front());
  queue_.pop_front();
  return work;
}

void Stream::Run() {
  for (std::function<void()> work = Next(); work != nullptr; work = Next()) {
    work();
    work = nullptr;  // what it holds is free before it counts as done
    const std::lock_guard<std::mutex> lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace simulated_gpu
