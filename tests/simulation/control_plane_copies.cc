// Agents that keep copies of commits, and workers that begin with them.
#include <algorithm>

#include "tests/simulation/control_plane.h"

namespace hvd {

void ControlPlane::CarryKeep(const rendezvous::membership::KeepCommitsEffect& effect) {
  CheckAgentOf(effect.host, effect.agent);
  if (!wrong_.empty()) return;
  const int stream = attached_[effect.host];
  SendDown(stream, [this, stream, from = effect.from] {
    const int index = streams_[stream].agent;
    Agent& agent = agents_[index];
    const int turn = ++agent.keep_turn;
    if (from.empty()) agent.kept = 0;
    if (!from.empty()) TakeCopies(index, turn, FindHost(from));
  });
}

// Looks for newer commits on another host as long as the daemon orders it.
void ControlPlane::TakeCopies(int index, int turn, int from) {
  Agent& agent = agents_[index];
  if (!agent.alive || agent.keep_turn != turn) return;
  const bool linked = machines_[from].powered && machines_[agent.host].powered;
  uint64_t newest = agent.kept;
  for (const Process& process : processes_) {
    if (linked && process.alive && process.host == from) newest = std::max(newest, process.commit);
  }
  if (newest > agent.kept) {
    agent.kept = newest;
    ++tally_.copies;
    TellKept(index);
  }
  time_.After(dice_.Between(10 * kMilli, kSecond),
              [this, index, turn, from] { TakeCopies(index, turn, from); });
}

void ControlPlane::TellKept(int index) {
  const Agent& agent = agents_[index];
  SendUp(agent.stream, [this, host = machines_[agent.host].name, kept = agent.kept] {
    Apply(rendezvous::membership::CommitKept{host, kept});
  });
}

// Before it asks for its first world, and as rank 0 of a world in which all get its state.
void ControlPlane::TakeKept(Process* process) {
  const uint64_t kept = agents_[process->agent].kept;
  if (kept <= process->commit) return;
  Log("worker ", process->id.value(), " takes over commit ", kept);
  process->commit = kept;
  ++tally_.copies_used;
}

}  // namespace hvd
