#include "base/clock.h"

#include <algorithm>
#include <chrono>

#include "base/deadline_timer.h"

namespace hvd {
namespace {

// An upper bound of waits, within the range of a 64-bit number of nanoseconds.
constexpr absl::Duration kFar = absl::Hours(24 * 365 * 100);

// The wall-clock time at the start, advanced by the monotonic clock. So the values are close to
// wall-clock times, but never jump when the system's clock is set.
class RealClock : public Clock {
 public:
  absl::Time Now() override {
    return start_wall_ + absl::FromChrono(std::chrono::steady_clock::now() - start_steady_);
  }

  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    if (deadline == absl::InfiniteFuture()) {
      mutex.Await(condition);
      return true;
    }
    const absl::Duration since_start = std::min(deadline - start_wall_, kFar);
    return DeadlineTimer::Get().Await(mutex, condition,
                                      start_steady_ + absl::ToChronoNanoseconds(since_start));
  }

 private:
  const absl::Time start_wall_ = absl::Now();
  const std::chrono::steady_clock::time_point start_steady_ = std::chrono::steady_clock::now();
};

}  // namespace

Clock& Clock::Real() {
  static RealClock* const clock = new RealClock;
  return *clock;
}

absl::Time WallNow() { return absl::Now(); }

}  // namespace hvd
