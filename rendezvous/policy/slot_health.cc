#include "rendezvous/policy/slot_health.h"

#include <iterator>

namespace hvd::rendezvous::policy {

absl::Duration SlotHealth::Failed(const std::string& host, int slot, int free, absl::Time now) {
  // Drops forgiven slots, so that the map does not grow with every slot that ever failed.
  for (auto each = slots_.begin(); each != slots_.end();) {
    each = Forgiven(each->second, now) ? slots_.erase(each) : std::next(each);
  }
  Slot& health = slots_[{host, slot}];
  ++health.failures;
  health.last = now;
  const Cooldown range = cooldown_.value_or(Cooldown());
  // Negative: one of the first `free` failures, which cause no pause.
  const int doublings = health.failures - 1 - (cooldown_.has_value() ? 0 : free);
  absl::Duration rest = absl::ZeroDuration();
  if (doublings >= 0) {
    rest = std::min(range.longest, range.shortest * (1 << std::min(doublings, 20)));
  }
  health.rests_until = now + rest;
  return rest;
}

absl::Time SlotHealth::RestsUntil(const std::string& host, int slot, absl::Time now) const {
  const auto health = slots_.find({host, slot});
  if (health == slots_.end() || health->second.rests_until <= now) return absl::InfinitePast();
  return health->second.rests_until;
}

absl::Time SlotHealth::FailedAt(const std::string& host, int slot) const {
  const auto health = slots_.find({host, slot});
  return health == slots_.end() ? absl::InfinitePast() : health->second.last;
}

int SlotHealth::Failures(const std::string& host, int slot) const {
  const auto health = slots_.find({host, slot});
  return health == slots_.end() ? 0 : health->second.failures;
}

}  // namespace hvd::rendezvous::policy
