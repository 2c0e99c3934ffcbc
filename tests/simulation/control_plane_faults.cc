// The faults and the planned changes of a run.
#include <algorithm>

#include "tests/simulation/control_plane.h"

namespace hvd {
namespace {

constexpr Micros kTearingEnds = 60 * kSecond;
constexpr Micros kAllHealed = 90 * kSecond;

}  // namespace

void ControlPlane::PlanFaults() {
  // Most of them during training, some of them close together.
  const Micros training = 3 * kSecond + static_cast<Micros>(goal_) * step_time_;
  const Micros end = std::min(dice_.Chance(30) ? training / 3 : training * 2, 40 * kSecond);
  const int faults = static_cast<int>(dice_.Between(0, 7));
  for (int fault = 0; fault < faults; ++fault) {
    time_.After(dice_.Between(kSecond / 2, end), [this] { StrikeOnce(); });
  }
  last_fault_ = kAllHealed;
  time_.After(kAllHealed, [this] { Recover(); });
}

void ControlPlane::StrikeOnce() {
  if (verdict_.has_value()) return;
  ++tally_.faults;
  const int64_t die = dice_.Roll(100);
  if (gentle_) {
    if (die < 20) return KillDaemon(dice_.Between(200 * kMilli, 4 * kSecond));
    if (die < 30) is_replaced_next_ = daemon_alive_;
    return die < 30 ? void() : StrikePlanned();
  }
  if (die < 45) return StrikeWorker();
  if (die < 70) return StrikeHost();
  if (die < 76) return KillDaemon(dice_.Between(200 * kMilli, 15 * kSecond));
  if (die < 80) {
    is_replaced_next_ = daemon_alive_;
    return;
  }
  if (die < 98 || !daemon_alive_) return StrikePlanned();
  stop_requested_ = true;
  Log("stop");
  rendezvous::membership::StopRequested stop{"Ctrl-C", 130, absl::Seconds(dice_.Between(0, 5))};
  stop.at_commit = dice_.Roll(2) == 0;
  Apply(stop);
}

int ControlPlane::RandomProcess() {
  std::vector<int> alive;
  for (size_t process = 0; process < processes_.size(); ++process) {
    if (processes_[process].alive) alive.push_back(static_cast<int>(process));
  }
  return alive.empty() ? -1 : alive[dice_.Roll(static_cast<int64_t>(alive.size()))];
}

bool ControlPlane::SomebodyElseTrains(int index) const {
  const Process& process = processes_[index];
  const auto trains = [](const Process& p) {
    return p.alive && !p.frozen && (p.phase == Phase::kConnecting || p.phase == Phase::kTraining);
  };
  return trains(process) &&
         std::any_of(processes_.begin(), processes_.end(), [&](const Process& other) {
           return &other != &process && other.epoch == process.epoch && trains(other);
         });
}

void ControlPlane::StrikeWorker() {
  const int index = RandomProcess();
  if (index < 0) return;
  Process& process = processes_[index];
  const int64_t die = dice_.Roll(100);
  if (die < 30) return Die(index, 0, 9);
  if (die < 40) return KillTwo(index);
  if (die < 50) return Die(index, OwnExitCode(index), 0);
  if (die < 55 && newest_world_.has_value()) {
    // Two newcomers with the same failure count as a mistake in the script, which is not forgiven.
    return Die(index, forgiving_ && process.epoch == 0 ? OwnExitCode(index) : 0, 0);
  }
  if (die < 70) {
    return ThrowException(index, forgiving_ ? absl::StrCat("error of worker ", process.id.value())
                                            : std::string("ValueError"));
  }
  if (die < 85) {
    // Without other workers, or if they can finish without it, nobody would notice.
    if (!SomebodyElseTrains(index) || CommitNumber(process.commit.id) + 1 >= goal_) return;
    Log("worker ", process.id.value(), " hangs");
    process.frozen = true;
    return;
  }
  const int percent = dice_.Chance(30) ? 100 : 50;
  for (size_t other = 0; other < processes_.size(); ++other) {
    if (processes_[other].alive && dice_.Chance(percent)) Die(static_cast<int>(other), 0, 9);
  }
}

// Two deaths close together: of any two workers, or of one and its replacement, as when memory runs
// out.
void ControlPlane::KillTwo(int first) {
  Die(first, 0, 9);
  const bool of_replacement = dice_.Chance(60);
  const Micros later =
      of_replacement ? dice_.Between(200 * kMilli, 4 * kSecond) : dice_.Between(0, 50 * kMilli);
  time_.After(later, [this, host = processes_[first].host, of_replacement] {
    for (int index = static_cast<int>(processes_.size()) - 1; index >= 0; --index) {
      const bool is_there = !of_replacement || processes_[index].host == host;
      if (processes_[index].alive && is_there) return Die(index, 0, 9);
    }
  });
}

// A member may die, or its host lose the others, when some members have the commit already and
// others have not.
bool ControlPlane::TearCommit(const Group& group) {
  if (gentle_ || time_.now() > kTearingEnds || !dice_.Chance(2)) return false;
  ++tally_.faults;
  const int victim = group.processes[dice_.Roll(static_cast<int64_t>(group.processes.size()))];
  const Micros when = dice_.Between(0, 50 * kMilli);
  if (dice_.Chance(75)) {
    time_.After(when, [this, victim] { Die(victim, 0, 9); });
    return true;
  }
  time_.After(when, [this, victim, members = group.processes, epoch = processes_[victim].epoch] {
    Isolate(processes_[victim].host);
    for (const int member : members) {
      const Process& process = processes_[member];
      if (process.epoch == epoch && UnreachedBy(process) >= 0) Abort(member);
    }
  });
  return true;
}

// All hosts lose power; some time later the launcher starts agents again.
void ControlPlane::StrikeFleet() {
  for (size_t host = 0; host < machines_.size(); ++host)
    PowerOff(static_cast<int>(host), dice_.Between(kSecond, 10 * kSecond));
}

// Everything is lost at once, with the daemon and its journal.
void ControlPlane::LoseJob() {
  Log("the job is lost as a whole");
  is_lost_ = true;
  ++tally_.lost;
}

void ControlPlane::StrikeHost() {
  if (dice_.Chance(10)) return StrikeFleet();
  if (dice_.Chance(5)) return LoseJob();
  const int host = static_cast<int>(dice_.Roll(static_cast<int64_t>(machines_.size())));
  Machine& machine = machines_[host];
  const Micros duration = dice_.Between(100 * kMilli, 12 * kSecond);
  switch (dice_.Roll(6)) {
    case 0:
      if (machine.agent >= 0) KillAgent(machine.agent);
      return;
    case 1:
      return PowerOff(host, dice_.Between(kSecond, 20 * kSecond));
    case 2:
      return Cut(host, true, false, duration);
    case 3:
      return Cut(host, false, true, duration);
    case 4:
      return StrikeWay();
    default:
      return Cut(host, true, true, duration);
  }
}

void ControlPlane::ChangeLimits() {
  if (!daemon_alive_) return;
  min_workers_ = static_cast<int>(dice_.Between(1, spec_.min_workers));
  max_workers_ = static_cast<int>(dice_.Between(min_workers_, spec_.max_workers + 2));
  Log("from ", min_workers_, " to ", max_workers_, " workers from now on");
  Apply(rendezvous::membership::LimitsChanged{min_workers_, max_workers_});
}

void ControlPlane::StrikePlanned() {
  if (dice_.Chance(15)) return ChangeLimits();
  if (discovery_ && dice_.Chance(60)) return StrikeDiscovery();
  const int host = static_cast<int>(dice_.Roll(static_cast<int64_t>(machines_.size())));
  Machine& machine = machines_[host];
  if (machine.agent < 0 || agents_[machine.agent].stream < 0) return;
  const Micros grace = dice_.Between(gentle_ ? 20 * kSecond : 2 * kSecond, 40 * kSecond);
  machine.no_agent_before = time_.now() + dice_.Between(0, 30 * kSecond);
  SendUp(agents_[machine.agent].stream, [this, host, grace] {
    Machine& leaving = machines_[host];
    Log("host ", leaving.name, " is drained");
    // The first drain counts, but that of a host which is held since then is over.
    const Micros ends = time_.now() + grace;
    leaving.leaves_by = leaving.leaving ? std::min(leaving.leaves_by, ends) : ends;
    leaving.drained = leaving.leaving = true;
    left_early_ = left_early_ || !newest_world_.has_value();
    Apply(rendezvous::membership::HostDraining{leaving.name, absl::Microseconds(grace),
                                               "spot instance reclaimed"});
  });
}

void ControlPlane::StrikeDiscovery() {
  const int host = static_cast<int>(dice_.Roll(static_cast<int64_t>(machines_.size())));
  Machine& machine = machines_[host];
  if (dice_.Chance(30)) {
    const int slots = static_cast<int>(dice_.Between(0, 4));
    machine.shrunk = machine.shrunk || slots < machine.slots;
    machine.resized = true;
    machine.slots = slots;
    return Discover();
  }
  const std::string name = machine.name;
  listed_.erase(name);
  Discover();
  time_.After(dice_.Between(100 * kMilli, 25 * kSecond), [this, name] {
    if (verdict_.has_value()) return;
    listed_.insert(name);
    Discover();
  });
}

void ControlPlane::Discover() {
  if (!daemon_alive_) return;
  rendezvous::membership::HostsDiscovered event;
  event.is_offer = offers_;
  offered_.clear();
  std::string text;
  for (Machine& machine : machines_) {
    const bool listed = listed_.count(machine.name) > 0;
    // A host that comes back after a drain, but is not listed, has only this grace.
    const Micros ends = time_.now() + absl::ToInt64Microseconds(spec_.elastic->drain_grace);
    if (!listed) machine.leaves_by = machine.leaving ? std::min(machine.leaves_by, ends) : ends;
    machine.leaving = machine.drained || !listed;
    left_early_ = left_early_ || (!listed && !newest_world_.has_value());
    if (!listed) continue;
    event.hosts.push_back({machine.name, machine.slots});
    offered_[machine.name] = std::min(machine.slots, machine.capacity);
    absl::StrAppend(&text, " ", machine.name, ":", machine.slots);
  }
  Log("discovered:", text);
  Apply(event);
}

// Ends the faults: from now on nothing fails, or no work is left.
void ControlPlane::Recover() {
  if (verdict_.has_value()) return;
  HealWays();
  for (size_t host = 0; host < machines_.size(); ++host) {
    Machine& machine = machines_[host];
    if (recovers_) {
      if (discovery_) machine.resized = true;
      if (discovery_) machine.slots = std::max(machine.slots, 3);
      listed_.insert(machine.name);
      continue;
    }
    machine.no_agent_before = last_fault_ * 100;
    PowerOff(static_cast<int>(host), kSecond);
  }
  if (discovery_) Discover();
}

}  // namespace hvd
