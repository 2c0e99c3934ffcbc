#include "rendezvous/policy/restart_budget.h"

#include <algorithm>

namespace hvd::rendezvous::policy {

bool RestartBudget::Spend(absl::Time now) {
  while (!spent_.empty() && now - spent_.front() >= budget_.window) spent_.pop_front();
  spent_.push_back(now);
  ++total_;
  return static_cast<int>(spent_.size()) <= budget_.failures;
}

int RestartBudget::Left(absl::Time now) const {
  const auto in_window = std::count_if(spent_.begin(), spent_.end(), [this, now](absl::Time time) {
    return now - time < budget_.window;
  });
  return std::max(0, budget_.failures - static_cast<int>(in_window));
}

}  // namespace hvd::rendezvous::policy
