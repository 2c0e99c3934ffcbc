#include "worker_runtime/engine/completion.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

#include "base/clock.h"

namespace hvd::worker_runtime::engine {
namespace {

// Returns whether a signal interrupted the call. Other results need no distinction: the callers
// check the word again.
bool Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0) < 0 && errno == EINTR;
}

}  // namespace

// The word goes from kPending to kSleepers when the first waiter is about to sleep, and to kDone
// once. The kernel lets a thread sleep only while the word is kSleepers, so a Notify between the
// compare-exchange and FUTEX_WAIT is not lost. The exchange releases the result's writes; it
// returns kSleepers, and costs the system call, only if a thread may be asleep.
void Completion::Notify() {
  if (word_.exchange(kDone, std::memory_order_acq_rel) == kSleepers) {
    Futex(word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
  }
}

void Completion::Wait() { WaitFor(absl::InfiniteDuration()); }

bool Completion::WaitFor(absl::Duration timeout) {
  return Await(timeout, /*until_signal=*/false) == Woken::kDone;
}

Completion::Woken Completion::WaitForOrSignal(absl::Duration timeout) {
  return Await(timeout, /*until_signal=*/true);
}

Completion::Woken Completion::Await(absl::Duration timeout, bool until_signal) {
  if (done()) return Woken::kDone;
  const bool bounded = timeout != absl::InfiniteDuration();
  const absl::Time deadline = bounded ? Clock::Real().Now() + timeout : absl::InfiniteFuture();
  while (!done()) {
    uint32_t expected = kPending;
    word_.compare_exchange_strong(expected, kSleepers, std::memory_order_acq_rel);
    if (!bounded) {
      Futex(word_, FUTEX_WAIT_PRIVATE, kSleepers, nullptr);
      continue;
    }
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) return done() ? Woken::kDone : Woken::kTimedOut;
    const timespec relative = absl::ToTimespec(left);
    const bool interrupted = Futex(word_, FUTEX_WAIT_PRIVATE, kSleepers, &relative);
    if (interrupted && until_signal && !done()) return Woken::kBySignal;
  }
  return Woken::kDone;
}

}  // namespace hvd::worker_runtime::engine
