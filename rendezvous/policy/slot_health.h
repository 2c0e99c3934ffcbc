// The cooldown of a job's slots after failures.
#ifndef RENDEZVOUS_POLICY_SLOT_HEALTH_H_
#define RENDEZVOUS_POLICY_SLOT_HEALTH_H_

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::policy {

// The health of each slot: after a failure it rests, longer each time; everything is forgotten
// after a quiet time that follows the rest. Not thread-safe.
class SlotHealth {
 public:
  static constexpr absl::Duration kQuietTime = absl::Minutes(5);

  // Empty: some failures cost no rest; for the others Cooldown's defaults apply.
  explicit SlotHealth(std::optional<Cooldown> cooldown) : cooldown_(cooldown) {}

  // Returns the rest that this failure costs. Without an explicit cooldown, `free` failures in a
  // row cost none.
  absl::Duration Failed(const std::string& host, int slot, int free, absl::Time now);
  // No slot has ever failed.
  bool empty() const { return slots_.empty(); }
  // InfinitePast if the slot may be used.
  absl::Time RestsUntil(const std::string& host, int slot, absl::Time now) const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("slots", slots_);
  }

 private:
  struct Slot {
    int failures = 0;
    absl::Time last;
    absl::Time rests_until;

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [failures, last, rests_until] = *this;
      fields("failures", failures, "last_ns", last, "rests_until_ns", rests_until);
    }
  };
  // The slot's failures no longer count.
  static bool Forgiven(const Slot& health, absl::Time now) {
    return now - std::max(health.last, health.rests_until) > kQuietTime;
  }

  const std::optional<Cooldown> cooldown_;
  std::map<std::pair<std::string, int>, Slot> slots_;
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_SLOT_HEALTH_H_
