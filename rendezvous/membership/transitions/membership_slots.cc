// Starts of workers in the free slots of an elastic job.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/decisions/free_slots.h"
#include "rendezvous/membership/transitions/membership_state.h"

namespace hvd::rendezvous::membership {

// Fills free slots until max_workers plus the spares are live. Slots in cooldown are skipped,
// unless the job can't go on without them; there are growing pauses between such attempts. The
// placements sent with the start commands are provisional: all live workers are planned together as
// if they formed one world now.
void Membership::State::StartWorkers(absl::Time now) {
  if (!started || standing.IsFinishing()) return;
  const decisions::SlotNeed need = decisions::NeedOfSlots(spec, least_workers(), standing, now);
  if (need.wanted <= 0 && need.holder < 0) return;
  const size_t first_new = workers.size();
  bool has_tried = false;
  for (const decisions::FreeSlot& free :
       decisions::SlotsToFill(need, decisions::FreeSlots(hosts, workers, health, last_time),
                              /*may_try=*/now >= epochs.next_try)) {
    has_tried = has_tried || free.rests();
    Worker worker;
    worker.id = WorkerId(++workers.last_id);
    worker.slot = free.slot;
    worker.host = free.host;
    workers.Add(worker, &hosts);
  }
  if (has_tried) epochs.CountTry(now);
  if (workers.size() == first_new) return;
  std::vector<Worker*> all;
  for (Worker& worker : workers) {
    if (standing.IsLive(worker)) all.push_back(&worker);
  }
  const std::vector<int> most = decisions::MostOnMachines(hosts, spec.max_workers);
  for (const placement::PlannedMember& member :
       placement::AssignElasticRanks(standing.ToCandidates(all), 1 << 30)) {
    Worker& worker = *all[member.candidate];
    if (workers.IndexOf(worker) < first_new) continue;
    worker.place = member.place;
    Start(worker, most[worker.host]);
  }
}

// In a job that ends: starts a worker that writes the newest commit, if those that could have done
// so have died, and there is time. If it dies, another one is started, on another host that has the
// commit, if there is one.
void Membership::State::StartWriter(absl::Time now) {
  if (!ending.has_value() || !ending->MayStartWriter() || standing.IsFinishing()) return;
  const std::vector<const Host*> holders = commits.HoldersOfUnwritten();
  if (holders.empty()) return;
  const Host& holder = *holders[ending->writers % holders.size()];
  if (!holder.drain.has_value() || now >= holder.drain->deadline) return;
  const int host = hosts.IndexOf(holder);
  const std::set<Workers::Slot> taken = workers.TakenSlots();
  Worker worker;
  while (taken.count({host, worker.slot}) > 0) ++worker.slot;
  if (worker.slot >= holder.slots.slots) return;
  worker.id = WorkerId(++workers.last_id);
  worker.host = host;
  worker.stop_at = holder.drain->deadline;
  ++ending->writers;
  Start(workers.Add(worker, &hosts), /*most_on_machine=*/1);
  Note(Notice::Kind::kWaiting,
       absl::StrCat("commit ", CommitNumber(holder.commit), " is in no checkpoint: worker ",
                    workers.last_id, " is started on host ", holder.slots.host, " to write it"),
       nullptr, &holder);
}

void Membership::State::Start(const Worker& worker, int most_on_machine) {
  const Host& host = HostOf(worker);
  effects.push_back(StartWorkerEffect{*host.agent, host.slots.host, worker.id, worker.place,
                                      worker.slot, most_on_machine});
  Note(Notice::Kind::kWorkerStarted,
       absl::StrCat("worker ", worker.id.value(), " started on host ", host.slots.host), &worker);
}

// The time at which StartWorkers can use another slot.
absl::Time Membership::State::NextFreeSlot() const {
  if (!started || health.empty() || standing.IsFinishing()) return absl::InfiniteFuture();
  const decisions::SlotNeed need =
      decisions::NeedOfSlots(spec, least_workers(), standing, last_time);
  return decisions::NextFreeSlot(need, decisions::FreeSlots(hosts, workers, health, last_time),
                                 epochs.next_try, last_time);
}

}  // namespace hvd::rendezvous::membership
