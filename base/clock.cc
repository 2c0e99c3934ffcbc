#include "base/clock.h"

#include <chrono>

namespace hvd {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override {
    return start_wall_ + absl::FromChrono(std::chrono::steady_clock::now() - start_steady_);
  }

  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    // A duration, not the deadline itself: our time line may differ from absl's after a clock step.
    return mutex.AwaitWithTimeout(condition, deadline - Now());
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
