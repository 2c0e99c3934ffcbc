// Who keeps the others waiting, and for how long, in words.
#ifndef WORKER_RUNTIME_NEGOTIATION_STALL_H_
#define WORKER_RUNTIME_NEGOTIATION_STALL_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker_runtime/negotiation/readiness.h"

namespace hvd {

// Zero means never, as infinity does.
struct StallOptions {
  absl::Duration warn_after = absl::InfiniteDuration();
  absl::Duration give_up_after = absl::InfiniteDuration();
};

// What a look at the table found.
struct StallReport {
  std::vector<std::string>
      warnings;  // one a tensor, at most a handful; said again each time warn_after has passed
  std::string give_up;  // not empty: the epoch must end, for this reason
};

// Not thread-safe.
class StallInspector {
 public:
  explicit StallInspector(const StallOptions& options);

  // Something waits: makes sure that a look is planned.
  void Watch(absl::Time now);
  // When Look is due; InfiniteFuture while nothing is planned.
  absl::Time next_look() const { return next_look_; }
  // REQUIRES: next_look() <= now.
  StallReport Look(const Readiness& readiness, absl::Time now);

 private:
  const StallOptions options_;
  absl::Time next_look_ = absl::InfiniteFuture();
  absl::Time last_warning_ = absl::InfinitePast();
};

}  // namespace hvd

#endif  // WORKER_RUNTIME_NEGOTIATION_STALL_H_
