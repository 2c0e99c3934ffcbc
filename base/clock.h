// The clock interface, which lets tests control the time.
#ifndef BASE_CLOCK_H_
#define BASE_CLOCK_H_

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hvd {

// Returns the time and waits for conditions. Implementations are thread-safe. Code with side
// effects receives a Clock&; pure code receives absl::Time values. Only clock.cc and
// deadline_timer.cc read real clocks.
class Clock {
 public:
  virtual ~Clock() = default;

  // The process's real clock. Never destroyed.
  static Clock& Real();

  // Never goes backwards while the process lives, even if the system's clock is set.
  virtual absl::Time Now() = 0;

  // Waits until `condition` holds or `deadline` has passed, by Now(); returns whether it holds.
  // REQUIRES: `mutex` is held by the caller; it is held again on return.
  virtual bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                                 absl::Time deadline) = 0;
};

// The wall-clock time, only for display.
absl::Time WallNow();

}  // namespace hvd

#endif  // BASE_CLOCK_H_
