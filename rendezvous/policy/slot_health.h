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

// Tracks the failures of each slot. After a failure the slot is not used for a while, longer each
// time. A slot's failures are forgotten after kQuietTime without one, counted from the end of its
// last pause. Not thread-safe.
class SlotHealth {
 public:
  static constexpr absl::Duration kQuietTime = absl::Minutes(5);

  // Empty: Cooldown's defaults apply, and the first failures (see Failed) cause no pause.
  explicit SlotHealth(std::optional<Cooldown> cooldown) : cooldown_(cooldown) {}

  // Records a failure and returns the pause that it causes. Without an explicit cooldown, the first
  // `free` failures in a row cause none.
  absl::Duration Failed(const std::string& host, int slot, int free, absl::Time now);
  // No slot has ever failed.
  bool empty() const { return slots_.empty(); }
  // The end of the slot's pause; InfinitePast if the slot may be used.
  absl::Time RestsUntil(const std::string& host, int slot, absl::Time now) const;
  // The slot's last failure; InfinitePast: none is known. And how many there were in a row.
  absl::Time FailedAt(const std::string& host, int slot) const;
  int Failures(const std::string& host, int slot) const;

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
  // Whether the slot's failures no longer count.
  static bool Forgiven(const Slot& health, absl::Time now) {
    return now - std::max(health.last, health.rests_until) > kQuietTime;
  }

  const std::optional<Cooldown> cooldown_;
  std::map<std::pair<std::string, int>, Slot> slots_;
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_SLOT_HEALTH_H_
