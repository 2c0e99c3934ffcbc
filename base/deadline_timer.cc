#include "base/deadline_timer.h"

#include "base/signal_free_thread.h"

namespace hvd {
namespace {

constexpr std::chrono::milliseconds kTryAgain(1);

}  // namespace

DeadlineTimer& DeadlineTimer::Get() {
  static DeadlineTimer* const timer = new DeadlineTimer;
  return *timer;
}

DeadlineTimer::DeadlineTimer() {
  StartSignalFreeThread([this] { Run(); }).detach();
}

bool DeadlineTimer::Await(absl::Mutex& mutex, const absl::Condition& condition, Time deadline) {
  if (condition.Eval()) return true;
  if (std::chrono::steady_clock::now() >= deadline) return false;
  Waiter waiter{&mutex};
  const auto entry = Add(deadline, waiter);
  const auto done = [&] { return waiter.over.load() || condition.Eval(); };
  mutex.Await(absl::Condition(&done));
  Remove(entry);
  return condition.Eval();
}

DeadlineTimer::Waiters::iterator DeadlineTimer::Add(Time deadline, Waiter& waiter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (deadline < sleeps_until_) earlier_.notify_one();
  return waiters_.emplace(deadline, &waiter);
}

// The thread is not woken: it finds nothing to do when it wakes up.
void DeadlineTimer::Remove(Waiters::iterator entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiters_.erase(entry);
}

void DeadlineTimer::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    sleeps_until_ = WakeThoseDue();
    if (sleeps_until_ == Time::max()) {
      earlier_.wait(lock);
    } else {
      earlier_.wait_until(lock, sleeps_until_);
    }
  }
}

DeadlineTimer::Time DeadlineTimer::WakeThoseDue() {
  const Time now = std::chrono::steady_clock::now();
  bool missed = false;
  auto next = waiters_.begin();
  for (; next != waiters_.end() && next->first <= now; ++next) {
    Waiter& waiter = *next->second;
    // Whoever lets go of the mutex after this finds the waiter ready to go on. If nobody has it,
    // that is us; if somebody has, it will be them. But a try may fail for other reasons as well.
    waiter.over = true;
    if (waiter.mutex->TryLock()) {
      waiter.mutex->Unlock();
    } else {
      missed = true;
    }
  }
  if (missed) return now + kTryAgain;
  return next == waiters_.end() ? Time::max() : next->first;
}

}  // namespace hvd
