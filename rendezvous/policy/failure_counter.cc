#include "rendezvous/policy/failure_counter.h"

#include <algorithm>

namespace hvd::rendezvous::policy {

bool FailureCounter::Count(absl::Time now) {
  while (!times_.empty() && now - times_.front() >= budget_.window) times_.pop_front();
  times_.push_back(now);
  ++total_;
  return static_cast<int>(times_.size()) <= budget_.failures;
}

int FailureCounter::Left(absl::Time now) const {
  const auto in_window = std::count_if(times_.begin(), times_.end(), [this, now](absl::Time time) {
    return now - time < budget_.window;
  });
  return std::max(0, budget_.failures - static_cast<int>(in_window));
}

}  // namespace hvd::rendezvous::policy
