#include "rendezvous/membership/decisions/free_slots.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "rendezvous/membership/decisions/copy_plan.h"

namespace hvd::rendezvous::membership::decisions {

std::vector<FreeSlot> FreeSlots(const Hosts& hosts, const Workers& workers,
                                const policy::SlotHealth& health, absl::Time now) {
  std::vector<FreeSlot> free;
  const std::set<std::pair<int, int>> taken = workers.TakenSlots();
  for (const Host& host : hosts) {
    if (!host.TakesPart()) continue;
    const std::string& name = host.slots.host;
    for (int slot = 0; slot < host.slots.slots; ++slot) {
      const int index = hosts.IndexOf(host);
      if (taken.count({index, slot}) > 0) continue;
      FreeSlot& added = free.emplace_back();
      added = {index, slot, health.RestsUntil(name, slot, now), absl::InfinitePast()};
      if (added.rests()) added.failed_at = health.FailedAt(name, slot);
    }
  }
  std::stable_sort(free.begin(), free.end(),
                   [](const FreeSlot& a, const FreeSlot& b) { return a.failed_at < b.failed_at; });
  return free;
}

SlotNeed NeedOfSlots(const policy::JobSpec& spec, int least, const Standing& standing,
                     absl::Time now) {
  SlotNeed need;
  need.wanted = static_cast<int64_t>(spec.max_workers) + spec.elastic->spares;
  need.missing = least;
  for (const Worker& worker : standing.workers()) {
    const bool is_live = standing.IsLive(worker);
    // The slots of those that are ending will be free.
    const bool slot_stays =
        standing.HostOf(worker).agent.has_value() && !standing.IsLeaving(worker);
    if (is_live) --need.wanted;
    if (is_live || (!worker.life.gone() && slot_stays)) --need.missing;
  }
  const Host* const holder = CopyPlan(standing).HolderWithoutWorker(now);
  if (holder != nullptr) need.holder = standing.hosts().IndexOf(*holder);
  return need;
}

std::vector<FreeSlot> SlotsToFill(SlotNeed need, const std::vector<FreeSlot>& free, bool may_try) {
  std::vector<FreeSlot> chosen;
  for (const FreeSlot& slot : free) {
    const bool on_holder = slot.host == need.holder;
    if (need.wanted <= 0 && !on_holder) continue;
    if (slot.rests() && !(may_try && (need.missing > 0 || on_holder))) continue;
    if (on_holder) need.holder = -1;
    --need.wanted;
    --need.missing;
    chosen.push_back(slot);
  }
  return chosen;
}

absl::Time NextFreeSlot(const SlotNeed& need, const std::vector<FreeSlot>& free,
                        absl::Time next_try, absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  for (const FreeSlot& slot : free) {
    if (!slot.rests()) continue;
    next = std::min(next, slot.rests_until);
    if (need.is_urgent() && next_try > now) next = std::min(next, next_try);
  }
  return next;
}

// Counts slots and not present workers, since the replacement of a failed worker may start alone.
// Spares are not counted: they do not compute. Hosts that leave are not counted either: others may
// take their place.
std::vector<int> MostOnMachines(const Hosts& hosts, int max_workers) {
  std::vector<int> most(hosts.size());
  const std::vector<int> machines = hosts.Machines();
  std::vector<int64_t> slots(hosts.size());  // by machine
  for (const Host& host : hosts) {
    const bool there = host.agent.has_value() || host.away.has_value();
    if (!there || host.ended || host.drain.has_value()) continue;
    slots[machines[hosts.IndexOf(host)]] += host.slots.slots;
  }
  for (size_t i = 0; i < most.size(); ++i) {
    const int64_t own = hosts[i].slots.slots;
    most[i] = static_cast<int>(std::min<int64_t>(std::max(slots[machines[i]], own), max_workers));
  }
  return most;
}

}  // namespace hvd::rendezvous::membership::decisions
