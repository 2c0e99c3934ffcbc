// The free slots of an elastic job, and the choice of those that get a worker next.
#ifndef RENDEZVOUS_MEMBERSHIP_DECISIONS_FREE_SLOTS_H_
#define RENDEZVOUS_MEMBERSHIP_DECISIONS_FREE_SLOTS_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/workers.h"
#include "rendezvous/policy/job_spec.h"
#include "rendezvous/policy/slot_health.h"

namespace hvd::rendezvous::membership::decisions {

struct FreeSlot {
  int host = 0;  // index
  int slot = 0;
  absl::Time rests_until;  // InfinitePast: it may be used
  absl::Time failed_at;    // if it rests

  bool rests() const { return rests_until != absl::InfinitePast(); }
};

// What a job lacks.
struct SlotNeed {
  int64_t wanted = 0;  // workers, up to the maximum and the spares
  int missing = 0;     // workers without which no world can form, apart from those that are ending
  int holder = -1;     // index of a host whose commit only a worker there can bring; -1: none

  bool is_urgent() const { return missing > 0 || holder >= 0; }
};

// The slots in which a worker could be started: those that may be used, then those in cooldown, the
// one that has rested longest first.
std::vector<FreeSlot> FreeSlots(const Hosts& hosts, const Workers& workers,
                                const policy::SlotHealth& health, absl::Time now);

// `least` is the number of workers that the next world needs.
SlotNeed NeedOfSlots(const policy::JobSpec& spec, int least, const Standing& standing,
                     absl::Time now);

// Those of the free slots to use now. Beyond the wanted ones, one on the holder's host. A slot in
// cooldown is used, if `may_try` says that its pause is over, when the need is urgent.
std::vector<FreeSlot> SlotsToFill(SlotNeed need, const std::vector<FreeSlot>& free, bool may_try);

// The time after `now` at which another slot can be used: the end of a cooldown, or `next_try`, at
// which one may be cut short if the need is urgent.
absl::Time NextFreeSlot(const SlotNeed& need, const std::vector<FreeSlot>& free,
                        absl::Time next_try, absl::Time now);

// For each host, an upper bound of the members on its machine in any later world.
std::vector<int> MostOnMachines(const Hosts& hosts, int max_workers);

}  // namespace hvd::rendezvous::membership::decisions

#endif  // RENDEZVOUS_MEMBERSHIP_DECISIONS_FREE_SLOTS_H_
