#include "rendezvous/membership/standing.h"

#include <algorithm>
#include <map>

namespace hvd::rendezvous::membership {

bool Standing::IsLeaving(const Worker& worker) const {
  const Host& host = HostOf(worker);
  return host.drain.has_value() || host.IsResting() || worker.slot >= host.slots.slots;
}

bool Standing::IsLive(const Worker& worker) const {
  return worker.life.running() && !worker.life.finished() && !IsLeaving(worker);
}

bool Standing::IsReadyNewcomer(const Worker& worker) const {
  return worker.WaitsForFirstWorld() && !IsLeaving(worker);
}

bool Standing::MayComeAgain(const Worker& worker) const {
  return !epochs_.broken.has_value() && worker.life.finished() &&
         worker.last_world == epochs_.current && !worker.join.has_value() && !worker.life.gone() &&
         !worker.life.leaving();
}

bool Standing::SomeGoOn() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const Worker& w) {
    return w.IsSurvivor() || (w.join.has_value() && w.last_world == epochs_.current);
  });
}

bool Standing::IsFinishing() const {
  const bool some_finished = std::any_of(workers_.begin(), workers_.end(), [this](const Worker& w) {
    return w.life.finished() && w.last_world == epochs_.current;
  });
  return some_finished && (!epochs_.broken.has_value() || !SomeGoOn());
}

bool Standing::ComingTogether() const {
  if (epochs_.current == Epoch(0)) return true;
  if (epochs_.broken.has_value()) return !IsFinishing();
  return SomeMemberAsks();
}

bool Standing::SomeMemberAsks() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const Worker& w) {
    return w.join.has_value() && w.last_world == epochs_.current;
  });
}

bool Standing::AllMembersAsk() const {
  return std::none_of(workers_.begin(), workers_.end(), [this](const Worker& w) {
    return w.last_world == epochs_.current && !w.join.has_value();
  });
}

std::vector<int> Standing::LateSurvivors() const {
  return workers_.RanksWhere([](const Worker& w) { return w.IsSurvivor() && !w.join.has_value(); });
}

absl::Time Standing::OldWorldEnds() const {
  absl::Time end = absl::InfinitePast();
  for (const Worker& worker : workers_) {
    if (epochs_.current == Epoch(0) || worker.last_world != epochs_.current) continue;
    if (worker.may_train_until == absl::InfinitePast()) return absl::InfinitePast();
    end = std::max(end, worker.may_train_until);
  }
  return end;
}

std::vector<int> Standing::MachinesInOrder() const {
  std::vector<int> machines = hosts_.Machines();
  if (epochs_.current > Epoch(0)) return machines;
  std::map<int, int> order;
  for (const Worker& worker : workers_) {
    order.emplace(machines[worker.host], static_cast<int>(order.size()));
  }
  for (int& machine : machines) {
    machine = order.emplace(machine, static_cast<int>(order.size())).first->second;
  }
  return machines;
}

bool Standing::AllStartAnew(absl::Span<const Worker* const> workers) {
  return std::all_of(workers.begin(), workers.end(),
                     [](const Worker* worker) { return StartsAnew(*worker); });
}

std::vector<placement::Candidate> Standing::ToCandidates(
    absl::Span<const Worker* const> workers) const {
  const std::vector<int> machines = AllStartAnew(workers) ? hosts_.Machines() : MachinesInOrder();
  std::vector<placement::Candidate> candidates;
  for (const Worker* worker : workers) {
    candidates.push_back({machines[worker->host], hosts_.SlotOnMachine(worker->host, worker->slot),
                          worker->life.member() ? worker->place.rank : -1, worker->commit,
                          StartsAnew(*worker)});
  }
  return candidates;
}

}  // namespace hvd::rendezvous::membership
