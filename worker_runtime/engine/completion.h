// A one-shot event: a flag that is set once and that threads can wait for.
#ifndef WORKER_RUNTIME_ENGINE_COMPLETION_H_
#define WORKER_RUNTIME_ENGINE_COMPLETION_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace hvd::worker_runtime::engine {

// Thread-safe. A check costs one load; setting the flag costs a system call only if a thread
// sleeps. Writes before Notify are visible to a thread for which done() or WaitFor was true or Wait
// has returned.
class Completion {
 public:
  bool done() const { return word_.load(std::memory_order_acquire) == kDone; }
  void Notify();
  void Wait();
  // Returns whether the flag was set within `timeout`.
  bool WaitFor(absl::Duration timeout);
  // Waits like WaitFor, but a signal handled by this thread ends the wait.
  enum class Woken { kDone, kBySignal, kTimedOut };
  Woken WaitForOrSignal(absl::Duration timeout);

 private:
  Woken Await(absl::Duration timeout, bool until_signal);

  static constexpr uint32_t kPending = 0, kSleepers = 1, kDone = 2;
  std::atomic<uint32_t> word_{kPending};  // the futex word
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_COMPLETION_H_
