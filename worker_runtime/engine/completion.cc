#include "worker_runtime/engine/completion.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "base/clock.h"

namespace hvd {
namespace {

void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  // Interruptions and changes of the word look alike to the callers, who look again.
  syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void Completion::Notify() {
  if (word_.exchange(kDone, std::memory_order_acq_rel) == kSleepers) {
    Futex(word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
  }
}

void Completion::Wait() { WaitFor(absl::InfiniteDuration()); }

bool Completion::WaitFor(absl::Duration timeout) {
  if (done()) return true;
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
    if (left <= absl::ZeroDuration()) return done();
    const timespec relative = absl::ToTimespec(left);
    Futex(word_, FUTEX_WAIT_PRIVATE, kSleepers, &relative);
  }
  return true;
}

}  // namespace hvd
