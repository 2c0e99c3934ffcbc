#include "base/deadline_timer.h"

#include "base/signal_free_thread.h"

namespace hvd {
namespace {

// The pause before the next attempt to wake a waiter whose mutex was locked.
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
  // Lock order: the caller's `mutex`, then mutex_ (in Add and Remove). `waiter` is on this stack:
  // the timer's thread uses it only under mutex_ while it is in waiters_, and Remove takes it out.
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

// Does not wake the thread: at the removed deadline it finds nothing to do.
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
    // Abseil evaluates the conditions of waiters when a thread releases their mutex. So the next
    // release after this store wakes the waiter. If the mutex is free, this thread takes and
    // releases it; if it is locked, its holder will release it. It may only try to lock: a holder
    // may be blocked in Add on mutex_, which this thread has. TryLock may also fail for a free
    // mutex, so the attempt is repeated after a pause.
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
