// A timer for condition waits with deadlines on the monotonic clock, unaffected by changes of the
// wall clock.
#ifndef BASE_DEADLINE_TIMER_H_
#define BASE_DEADLINE_TIMER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "absl/synchronization/mutex.h"

namespace hvd {

// Abseil passes the deadline of a timed wait to the kernel as an absolute wall-clock time: if the
// clock is set back by a minute, the wait lasts a minute longer. So the waiters here wait without a
// deadline, and a thread that sleeps on the monotonic clock wakes those whose deadline has passed.
// Thread-safe. One timer serves the process; its thread, which takes no signals, starts with the
// first wait and is never joined.
class DeadlineTimer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The process's timer. Never destroyed.
  static DeadlineTimer& Get();

  // Waits until `condition` holds or `deadline` has passed; returns whether it holds.
  // REQUIRES: `mutex` is held by the caller; it is held again on return.
  bool Await(absl::Mutex& mutex, const absl::Condition& condition, Time deadline);

 private:
  struct Waiter {
    absl::Mutex* mutex;
    std::atomic<bool> over{false};
  };
  using Waiters = std::multimap<Time, Waiter*>;

  DeadlineTimer();
  Waiters::iterator Add(Time deadline, Waiter& waiter);
  void Remove(Waiters::iterator entry);
  [[noreturn]] void Run();
  // Returns the time of the next check.
  Time WakeThoseDue();

  std::mutex mutex_;  // lock order: after waiters' mutexes, which this thread only try-locks
  std::condition_variable earlier_;
  Waiters waiters_;
  Time sleeps_until_ = Time::max();
};

}  // namespace hvd

#endif  // BASE_DEADLINE_TIMER_H_
