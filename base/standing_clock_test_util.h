// A clock that a test sets by hand.
#ifndef BASE_STANDING_CLOCK_TEST_UTIL_H_
#define BASE_STANDING_CLOCK_TEST_UTIL_H_

#include "absl/time/time.h"
#include "base/clock.h"

namespace hvd {

// Not thread-safe; a wait returns at once.
class StandingClock : public Clock {
 public:
  explicit StandingClock(absl::Time now) : now_(now) {}
  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex&, const absl::Condition& condition, absl::Time) override {
    return condition.Eval();
  }
  void Advance(absl::Duration duration) { now_ += duration; }

 private:
  absl::Time now_;
};

}  // namespace hvd

#endif  // BASE_STANDING_CLOCK_TEST_UTIL_H_
