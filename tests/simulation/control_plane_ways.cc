// Ways between two hosts that are closed although the daemon reaches both.
#include <algorithm>

#include "tests/simulation/control_plane.h"

namespace hvd {
namespace {

constexpr Micros kForGood = 100000 * kSecond;

}  // namespace

bool ControlPlane::IsClosed(int host, int other) const {
  return closed_ways_.count(std::minmax(host, other)) > 0;
}

// The lowest rank of the process's world that it does not reach; -1: it reaches all.
int ControlPlane::UnreachedBy(const Process& process) const {
  const Group& group = groups_.at(process.epoch);
  for (size_t rank = 0; rank < group.world.members.size(); ++rank) {
    if (IsClosed(process.host, FindHost(group.world.members[rank].host)))
      return static_cast<int>(rank);
  }
  return -1;
}

bool ControlPlane::SpansClosedWay(const Group& group) const {
  return std::any_of(group.processes.begin(), group.processes.end(), [this](int process) {
    return process >= 0 && UnreachedBy(processes_[process]) >= 0;
  });
}

void ControlPlane::StrikeWay() {
  const auto hosts = static_cast<int64_t>(machines_.size());
  if (hosts < 2) return;
  const int host = static_cast<int>(dice_.Roll(hosts));
  if (dice_.Chance(25)) return Isolate(host);
  const int other = static_cast<int>((host + 1 + dice_.Roll(hosts - 1)) % hosts);
  CloseWay(host, other, dice_.Chance(50) ? kForGood : dice_.Between(kSecond, 60 * kSecond));
}

// Closes all ways to the host.
void ControlPlane::Isolate(int host) {
  const Micros duration = dice_.Chance(50) ? kForGood : dice_.Between(kSecond, 60 * kSecond);
  for (int other = 0; other < static_cast<int>(machines_.size()); ++other) {
    if (other != host) CloseWay(host, other, duration);
  }
}

void ControlPlane::CloseWay(int host, int other, Micros duration) {
  if (!closed_ways_.insert(std::minmax(host, other)).second) return;
  ++tally_.closed_ways;
  machines_[host].was_apart = machines_[other].was_apart = true;
  Log("hosts ", machines_[host].name, " and ", machines_[other].name,
      " do not reach each other any more");
  time_.After(duration, [this, host, other] { OpenWay(host, other); });
  // Connections that exist are reset, or nobody notices before the collectives take too long.
  if (dice_.Chance(50)) return;
  for (auto& [epoch, group] : groups_) {
    if (!SpansClosedWay(group)) continue;
    for (const int member : group.processes) {
      if (member >= 0 && UnreachedBy(processes_[member]) >= 0 &&
          processes_[member].epoch == epoch) {
        Later(member, dice_.Between(0, 5 * kSecond), [this, member = member] { Abort(member); });
      }
    }
  }
}

void ControlPlane::OpenWay(int host, int other) {
  if (closed_ways_.erase(std::minmax(host, other)) == 0) return;
  Log("hosts ", machines_[host].name, " and ", machines_[other].name, " reach each other again");
  for (auto& [epoch, group] : groups_) TryComplete(&group);
}

// From now on ways open again; one of them, or those of one host, may stay closed if a job can do
// without.
void ControlPlane::HealWays() {
  const std::set<std::pair<int, int>> closed = std::exchange(closed_ways_, {});
  for (auto& [epoch, group] : groups_) TryComplete(&group);
  for (int host = 0; host < static_cast<int>(machines_.size()); ++host) {
    const auto is_closed = [&](int other) { return closed.count(std::minmax(host, other)) > 0; };
    bool alone = SlotsWithout(host) >= spec_.max_workers && !HasSeveralAlone(host);
    for (int other = 0; other < static_cast<int>(machines_.size()); ++other)
      alone = alone && (other == host || is_closed(other));
    if (!alone || !dice_.Chance(50)) continue;
    for (int other = 0; other < static_cast<int>(machines_.size()); ++other) {
      if (other != host) CloseWay(host, other, kForGood);
    }
    return;
  }
  for (const auto& [host, other] : closed) {
    const bool has_spare =
        SlotsWithout(host) >= spec_.max_workers && SlotsWithout(other) >= spec_.max_workers;
    if (dice_.Chance(50) && has_spare) return CloseWay(host, other, kForGood);
  }
}

// Whether it has more than one commit that is on no other host.
bool ControlPlane::HasSeveralAlone(int host) const {
  uint64_t own = 0, others = 0;
  for (const Agent& agent : agents_) {
    if (!agent.alive) continue;
    uint64_t& newest = agent.host == host ? own : others;
    newest = std::max(newest, CommitNumber(NewestAt(agent).id));
  }
  return own > others + 1;
}

int ControlPlane::SlotsWithout(int host) const {
  int slots = 0;
  for (size_t other = 0; other < machines_.size(); ++other) {
    if (static_cast<int>(other) == host) continue;
    const Machine& machine = machines_[other];
    slots += offers_ ? std::min(machine.slots, machine.capacity) : machine.slots;
  }
  return slots;
}

}  // namespace hvd
