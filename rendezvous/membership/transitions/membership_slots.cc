// Starts of workers in the free slots of an elastic job.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/transitions/membership_state.h"

namespace hvd::rendezvous::membership {

// For each host, an upper bound of the members on its machine in any later world. It counts slots
// and not present workers, since the replacement of a failed worker may start alone. Spares are not
// counted: they do not compute. Hosts that leave are not counted either: others may take their
// place.
std::vector<int> Membership::State::MostOnMachines() const {
  std::vector<int> most(hosts.size());
  if (!elastic()) return most;
  const std::vector<int> machines = hosts.Machines();
  std::vector<int64_t> slots(hosts.size());  // by machine
  for (const Host& host : hosts) {
    const bool there = host.agent.has_value() || host.away.has_value();
    if (!there || host.ended || host.drain.has_value()) continue;
    slots[machines[hosts.IndexOf(host)]] += host.slots.slots;
  }
  for (size_t i = 0; i < most.size(); ++i) {
    const int64_t own = hosts[i].slots.slots;
    most[i] =
        static_cast<int>(std::min<int64_t>(std::max(slots[machines[i]], own), spec.max_workers));
  }
  return most;
}

// Fills free slots until max_workers plus the spares are live. Slots in cooldown are skipped,
// unless the job can't go on without them. The placements sent with the start commands are
// provisional: all live workers are planned together as if they formed one world now.
void Membership::State::StartWorkers(absl::Time now) {
  if (!started || IsFinishing()) return;
  const size_t first_new = workers.size();
  for (const FreeSlot& free : SlotsToFill(now)) {
    Worker worker;
    worker.id = WorkerId(++workers.last_id);
    worker.slot = free.slot;
    worker.host = free.host;
    workers.Add(worker, &hosts);
  }
  if (workers.size() == first_new) return;
  std::vector<Worker*> all;
  for (Worker& worker : workers) {
    if (IsLive(worker)) all.push_back(&worker);
  }
  const std::vector<int> most = MostOnMachines();
  for (const placement::PlannedMember& member :
       placement::AssignElasticRanks(ToCandidates(all), 1 << 30)) {
    Worker& worker = *all[member.candidate];
    if (workers.IndexOf(worker) < first_new) continue;
    worker.place = member.place;
    const Host& host = HostOf(worker);
    effects.push_back(StartWorkerEffect{*host.agent, host.slots.host, worker.id, worker.place,
                                        worker.slot, most[worker.host]});
    Note(Notice::Kind::kWorkerStarted,
         absl::StrCat("worker ", worker.id.value(), " started on host ", host.slots.host), &worker);
  }
}

// The slots in which a worker could be started: those that may be used, then those in cooldown, the
// one that has rested longest first.
std::vector<Membership::State::FreeSlot> Membership::State::FreeSlots() const {
  std::vector<FreeSlot> free;
  const std::set<std::pair<int, int>> taken = workers.TakenSlots();
  for (const Host& host : hosts) {
    if (!host.TakesPart()) continue;
    for (int slot = 0; slot < host.slots.slots; ++slot) {
      const int index = hosts.IndexOf(host);
      if (taken.count({index, slot}) > 0) continue;
      const absl::Time rests_until = health.RestsUntil(host.slots.host, slot, last_time);
      const bool rests = rests_until != absl::InfinitePast();
      free.push_back({index, slot, rests_until,
                      rests ? health.FailedAt(host.slots.host, slot) : absl::InfinitePast()});
    }
  }
  std::stable_sort(free.begin(), free.end(),
                   [](const FreeSlot& a, const FreeSlot& b) { return a.failed_at < b.failed_at; });
  return free;
}

// The free slots to use now. Beyond max_workers, one on the host whose commit the next world needs,
// if no other host can take a copy of it. A slot in cooldown is used, with growing pauses, if there
// would be too few workers for a world without it.
std::vector<Membership::State::FreeSlot> Membership::State::SlotsToFill(absl::Time now) {
  int64_t wanted = static_cast<int64_t>(spec.max_workers) + spec.elastic->spares;
  for (const Worker& worker : workers) {
    if (IsLive(worker)) --wanted;
  }
  const Host* const holder = HolderWithoutWorker(now);
  if (wanted <= 0 && holder == nullptr) return {};
  int missing = MissingWorkers();
  std::vector<FreeSlot> chosen;
  bool has_tried = false;
  const bool may_try = now >= epochs.next_try;
  bool holder_needs = holder != nullptr;
  for (const FreeSlot& free : FreeSlots()) {
    const bool on_holder = holder_needs && &hosts[free.host] == holder;
    const bool rests = free.rests_until != absl::InfinitePast();
    if (wanted <= 0 && !on_holder) continue;
    if (rests && !(may_try && (missing > 0 || on_holder))) continue;
    has_tried = has_tried || rests;
    holder_needs = holder_needs && !on_holder;
    --wanted;
    --missing;
    chosen.push_back(free);
  }
  if (has_tried) epochs.CountTry(now);
  return chosen;
}

// How many workers a world lacks, apart from those that are ending and whose slots will be free.
int Membership::State::MissingWorkers() const {
  int missing = epochs.current == Epoch(0) ? start_workers() : spec.min_workers;
  for (const Worker& worker : workers) {
    const bool slot_stays = HostOf(worker).agent.has_value() && !IsLeaving(worker);
    if (IsLive(worker) || (!worker.life.gone() && slot_stays)) --missing;
  }
  return missing;
}

// The time at which StartWorkers can use another slot: the end of a cooldown, or of the pause
// before one is cut short.
absl::Time Membership::State::NextFreeSlot(absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  if (!started || health.empty() || IsFinishing()) return next;
  const bool short_of_workers = MissingWorkers() > 0 || HolderWithoutWorker(now) != nullptr;
  for (const FreeSlot& free : FreeSlots()) {
    if (free.rests_until == absl::InfinitePast()) continue;
    next = std::min(next, free.rests_until);
    if (short_of_workers && epochs.next_try > last_time) next = std::min(next, epochs.next_try);
  }
  return next;
}

}  // namespace hvd::rendezvous::membership
