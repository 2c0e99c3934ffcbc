// Agents, their streams to the daemon, the network under them, and the launcher that starts them.
#include <algorithm>

#include "tests/simulation/control_plane.h"

namespace hvd {
namespace {

constexpr Micros kHeartbeatPatience = 2 * kSecond;
constexpr Micros kCallPatience = 3 * kSecond;
constexpr Micros kReattach = 30 * kSecond;  // as the daemon's

}  // namespace

// Starts an agent on each listed host without one.
void ControlPlane::LauncherRound() {
  if (verdict_.has_value()) return;
  for (size_t host = 0; host < machines_.size(); ++host) {
    const Machine& machine = machines_[host];
    const bool wanted = !discovery_ || offers_ || listed_.count(machine.name) > 0;
    if (!wanted || !machine.powered || machine.agent >= 0) continue;
    if (time_.now() < machine.no_agent_before) continue;
    StartAgent(static_cast<int>(host));
  }
  time_.After(dice_.Between(kSecond, 2 * kSecond), [this] { LauncherRound(); });
}

void ControlPlane::StartAgent(int host) {
  Machine& machine = machines_[host];
  if (verdict_.has_value() || machine.agent >= 0 || !machine.powered) return;
  Agent agent;
  agent.host = host;
  agent.incarnation = Incarnation(++next_incarnation_);
  agent.detached_since = time_.now();
  machine.agent = static_cast<int>(agents_.size());
  agents_.push_back(agent);
  Attach(machine.agent);
}

// Retries until it is attached, or its time for that is over.
void ControlPlane::Attach(int index) {
  Agent& agent = agents_[index];
  if (!agent.alive || agent.stream >= 0) return;
  if (agent.ending) return LeaveWhenEmpty(index);
  if (time_.now() >= agent.detached_since + kReattach) {
    Log("the agent on ", machines_[agent.host].name, " has tried long enough");
    return EndAgent(index, 0);
  }
  const Machine& machine = machines_[agent.host];
  const bool free = attached_.count(machine.name) == 0;
  if (daemon_alive_ && free && !machine.cut_up && !machine.cut_down) {
    Stream stream;
    stream.agent = index;
    stream.life = daemon_life_;
    stream.open_at_daemon = true;
    agent.stream = static_cast<int>(streams_.size());
    streams_.push_back(stream);
    attached_[machine.name] = agent.stream;
    return Admit(agent.stream);
  }
  time_.After(dice_.Between(300 * kMilli, kSecond), [this, index] { Attach(index); });
}

void ControlPlane::Admit(int stream) {
  const int index = streams_[stream].agent;
  Agent& agent = agents_[index];
  agent.told_to_end = false;  // it did not hear it
  rendezvous::membership::HostJoined joined;
  const Machine& machine = machines_[agent.host];
  joined.host = {machine.name, offers_ ? machine.capacity : machine.slots, machine.machine};
  joined.agent = agent.incarnation;
  if (has_copies_) joined.commit_address = machine.name + ":1";
  joined.commit = NewestAt(agents_[index]).id;
  for (const int process : agent.processes) joined.known_workers.push_back(processes_[process].id);
  Log("agent ", agent.incarnation.value(), " attaches for ", joined.host.host);
  Apply(joined);
  ReportAgain(index);
}

// Repeats messages that the daemon may not have received.
void ControlPlane::ReportAgain(int index) {
  for (const int process : agents_[index].processes) {
    SendUp(agents_[index].stream, [this, process] {
      Apply(rendezvous::membership::WorkerStarted{processes_[process].id, 1});
    });
    if (processes_[process].exit_told) ReportExit(process);
  }
}

void ControlPlane::SendUp(int index, std::function<void()> action) {
  if (index < 0) return;
  Stream& stream = streams_[index];
  stream.last_up = std::max(stream.last_up + 1, time_.now() + Delay());
  time_.After(stream.last_up - time_.now(), [this, index, action = std::move(action)] {
    Stream& there = streams_[index];
    if (there.lost || !there.open_at_daemon || there.life != daemon_life_) return;
    if (machines_[agents_[there.agent].host].cut_up || !there.held_up.empty()) {
      there.held_up.push_back(action);
    } else {
      action();
    }
  });
}

void ControlPlane::SendDown(int index, std::function<void()> action) {
  Stream& stream = streams_[index];
  stream.last_down = std::max(stream.last_down + 1, time_.now() + Delay());
  time_.After(stream.last_down - time_.now(), [this, index, action = std::move(action)] {
    Stream& there = streams_[index];
    if (there.lost || !there.open_at_agent || !agents_[there.agent].alive) return;
    if (machines_[agents_[there.agent].host].cut_down || !there.held_down.empty()) {
      there.held_down.push_back(action);
    } else {
      action();
    }
  });
}

void ControlPlane::EndAtDaemon(int index, const std::string& reason) {
  Stream& stream = streams_[index];
  if (!stream.open_at_daemon) return;
  stream.open_at_daemon = false;
  const Agent& agent = agents_[stream.agent];
  const Machine& machine = machines_[agent.host];
  attached_.erase(machine.name);
  Log("the daemon loses host ", machine.name, ": ", reason);
  Apply(rendezvous::membership::HostLost{machine.name, agent.incarnation, reason});
  if (machine.cut_down) return;  // the agent will notice by itself
  time_.After(Delay(), [this, index] { EndAtAgent(index); });
}

void ControlPlane::EndAtAgent(int index) {
  Stream& stream = streams_[index];
  if (!stream.open_at_agent) return;
  stream.open_at_agent = false;
  const int agent_index = stream.agent;
  Agent& agent = agents_[agent_index];
  if (!machines_[agent.host].cut_up) {
    SendUp(index, [this, index] { EndAtDaemon(index, "connection closed"); });
  }
  if (!agent.alive || agent.stream != index) return;
  agent.stream = -1;
  agent.detached_since = time_.now();
  time_.After(dice_.Between(10 * kMilli, kSecond), [this, agent_index] { Attach(agent_index); });
}

void ControlPlane::StartProcess(int agent_index, WorkerId worker, int slot) {
  Agent& agent = agents_[agent_index];
  if (agent.ending) return;
  for (const int known : agent.processes) {
    if (processes_[known].id == worker) return;
  }
  const int index = static_cast<int>(processes_.size());
  Process process;
  process.id = worker;
  process.incarnation = Incarnation(++next_incarnation_);
  process.host = agent.host;
  process.agent = agent_index;
  process.arena = slot;
  process.commit = agent.arenas[slot];
  processes_.push_back(process);
  by_worker_[worker.value()] = index;
  agent.processes.push_back(index);
  SendUp(agent.stream, [this, worker] { Apply(rendezvous::membership::WorkerStarted{worker, 1}); });
  Later(index, dice_.Between(100 * kMilli, 3 * kSecond), [this, index] { Join(index, true); });
}

// SIGTERM, then SIGKILL.
void ControlPlane::StopProcess(int index, Micros grace) {
  if (!processes_[index].alive) return;
  const bool heeds = !processes_[index].frozen && grace > 0;
  time_.After(heeds ? dice_.Between(kMilli, 100 * kMilli) : grace,
              [this, index, heeds] { Die(index, 0, heeds ? 15 : 9); });
}

void ControlPlane::EndAgent(int index, Micros grace) {
  Agent& agent = agents_[index];
  if (!agent.alive || agent.ending) return;
  agent.ending = true;
  for (const int process : agent.processes) StopProcess(process, grace);
  LeaveWhenEmpty(index);
}

void ControlPlane::LeaveWhenEmpty(int index) {
  Agent& agent = agents_[index];
  if (!agent.alive || !agent.ending) return;
  for (const int process : agent.processes) {
    if (!processes_[process].exit_told) return;
  }
  agent.alive = false;
  if (machines_[agent.host].agent == index) machines_[agent.host].agent = -1;
  if (agent.stream >= 0) EndAtAgent(agent.stream);
}

// The agent's workers die with it.
void ControlPlane::KillAgent(int index) {
  Agent& agent = agents_[index];
  if (!agent.alive) return;
  Log("the agent on ", machines_[agent.host].name, " is killed");
  agent.alive = false;
  if (machines_[agent.host].agent == index) machines_[agent.host].agent = -1;
  for (const int process : agent.processes) Die(process, 0, 9);
  if (agent.stream >= 0) EndAtAgent(agent.stream);
}

void ControlPlane::Die(int index, int exit_code, int signal) {
  Process& process = processes_[index];
  if (!process.alive) return;
  process.alive = false;
  process.frozen = false;
  ++process.turn;
  process.exit_code = exit_code;
  process.signal = signal;
  Log("worker ", process.id.value(), " on ", machines_[process.host].name, " ends: code ",
      exit_code, ", signal ", signal);
  DropCalls(index, !machines_[process.host].powered);
  const bool noticed = machines_[process.host].powered;
  const auto group = groups_.find(process.epoch);
  if (group != groups_.end() && process.phase != Phase::kEnding && noticed) {
    BreakGroup(process.epoch, index);
  } else if (group != groups_.end() && process.phase != Phase::kEnding) {
    group->second.broken = true;
  }
  if (!agents_[process.agent].alive) return;
  const int agent = process.agent;
  TellLeft(agent);
  if (dice_.Chance(80) && process.phase != Phase::kEnding) {
    SendUp(agents_[agent].stream, [this, id = process.id] {
      Log("worker ", id.value(), " is dying");
      Apply(rendezvous::membership::WorkerDying{id});
    });
  }
  time_.After(dice_.Between(kMilli, 300 * kMilli), [this, index, agent] {
    if (!agents_[agent].alive) return;
    processes_[index].exit_told = true;
    ReportExit(index);
    LeaveWhenEmpty(agent);
  });
}

void ControlPlane::ReportExit(int index) {
  const Process& process = processes_[index];
  rendezvous::membership::WorkerExited exited;
  exited.worker = process.id;
  exited.exit_code = process.exit_code;
  exited.signal = process.signal;
  SendUp(agents_[process.agent].stream, [this, exited] {
    Log("worker ", exited.worker.value(), " has exited");
    Apply(exited);
  });
}

void ControlPlane::PowerOff(int index, Micros away) {
  Machine& machine = machines_[index];
  if (!machine.powered) return;
  Log("host ", machine.name, " is switched off");
  machine.powered = false;
  Cut(index, true, true, away);
  if (machine.agent >= 0) {
    const int agent = machine.agent;
    const int stream = agents_[agent].stream;
    if (stream >= 0) streams_[stream].lost = true;
    if (stream >= 0) streams_[stream].open_at_agent = false;
    agents_[agent].stream = -1;
    KillAgent(agent);
  }
  time_.After(away, [this, index] { machines_[index].powered = true; });
}

void ControlPlane::Cut(int index, bool up, bool down, Micros duration) {
  Machine& machine = machines_[index];
  Log("host ", machine.name, " is cut off", up ? " towards" : "", down ? " from" : "",
      " the daemon");
  machine.cut_up = machine.cut_up || up;
  machine.cut_down = machine.cut_down || down;
  const int count = ++machine.cut_count;
  const auto if_still_cut = [this, index, count](Micros patience, std::function<void(int)> action) {
    time_.After(patience, [this, index, count, action = std::move(action)] {
      if (machines_[index].cut_count == count) action(index);
    });
  };
  if_still_cut(kHeartbeatPatience, [this](int host) {
    const Machine& there = machines_[host];
    const auto attached = attached_.find(there.name);
    if (there.cut_up && attached != attached_.end()) {
      EndAtDaemon(attached->second, "no sign of life for 2s");
    }
    if (there.cut_down && there.agent >= 0 && agents_[there.agent].stream >= 0) {
      EndAtAgent(agents_[there.agent].stream);
    }
  });
  if_still_cut(kCallPatience, [this](int host) { FailCallsOf(host); });
  if_still_cut(duration, [this](int host) { Heal(host); });
}

void ControlPlane::Heal(int index) {
  Machine& machine = machines_[index];
  Log("host ", machine.name, " is connected again");
  machine.cut_up = machine.cut_down = false;
  ++machine.cut_count;
  last_fault_ = std::max(last_fault_, time_.now());
  for (int number = 0; number < static_cast<int>(streams_.size()); ++number) {
    Stream& stream = streams_[number];
    if (agents_[stream.agent].host != index) continue;
    const std::vector<std::function<void()>> up = std::exchange(stream.held_up, {});
    const std::vector<std::function<void()>> down = std::exchange(stream.held_down, {});
    for (const auto& action : up) {
      if (!stream.lost && stream.open_at_daemon && stream.life == daemon_life_) action();
    }
    for (const auto& action : down) {
      if (!stream.lost && stream.open_at_agent && agents_[stream.agent].alive) action();
    }
    // Now each side learns what the other has done meanwhile.
    if (!stream.open_at_agent && stream.open_at_daemon) EndAtDaemon(number, "connection reset");
    if (stream.open_at_agent && !stream.open_at_daemon) EndAtAgent(number);
  }
}

void ControlPlane::FailCallsOf(int host) {
  for (uint64_t call = 1; call <= calls_.size(); ++call) {
    const Call& known = calls_[call - 1];
    if (processes_[known.process].host == host && !known.over) FailCall(call);
  }
}

}  // namespace hvd
