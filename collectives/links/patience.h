// How long a wait for data goes on: as long as data moves, and a time beyond.
#ifndef COLLECTIVES_LINKS_PATIENCE_H_
#define COLLECTIVES_LINKS_PATIENCE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace hvd::collectives::links {

// One wait. Not thread-safe. A wait follows the start of its operation, or a wait that has ended
// because data moved. So the timeout of each wait counts from the last movement in the operation.
class Patience {
 public:
  explicit Patience(absl::Duration timeout) : timeout_(timeout) {}

  // Returns whether nothing has moved for the timeout, since the first call. `moved`: something has
  // moved since the last call.
  bool IsOver(absl::Time now, bool moved) {
    if (moved || moved_at_ == absl::InfinitePast()) moved_at_ = now;
    return now - moved_at_ >= timeout_;
  }

  // How long a sleep may last, at the most, before the next call: some movements wake nobody.
  // REQUIRES: IsOver(now, ...) has just returned false.
  absl::Duration UntilNextLook(absl::Time now) const {
    return std::min(moved_at_ + timeout_ - now, timeout_ / kLooks);
  }

 private:
  // A movement is noticed late by 1/kLooks of the timeout at the most, and so is an end of all.
  static constexpr int kLooks = 8;

  const absl::Duration timeout_;
  absl::Time moved_at_ = absl::InfinitePast();
};

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_PATIENCE_H_
