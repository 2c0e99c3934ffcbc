// Agents that keep copies of commits, and workers that begin with them.
#include <algorithm>

#include "tests/simulation/control_plane.h"
#include "tests/simulation/trace.h"

namespace hvd {

void ControlPlane::CarryKeep(const rendezvous::membership::KeepCommitsEffect& effect) {
  CheckAgentOf(effect.host, effect.agent);
  if (!wrong_.empty()) return;
  const int stream = attached_[effect.host];
  SendDown(stream, [this, stream, from = effect.from] {
    const int index = streams_[stream].agent;
    Agent& agent = agents_[index];
    const int turn = ++agent.keep_turn;
    if (from.empty()) agent.kept = Commit();
    if (from.empty()) agent.told_kept = 0;
    if (from.empty()) TellLeft(index);
    if (!from.empty()) TakeCopies(index, turn, FindHost(from));
  });
}

// Looks for newer commits on another host as long as the daemon orders it.
void ControlPlane::TakeCopies(int index, int turn, int from) {
  Agent& agent = agents_[index];
  if (!agent.alive || agent.keep_turn != turn) return;
  const bool closed = IsClosed(from, agent.host);
  const bool linked = machines_[from].powered && machines_[agent.host].powered && !closed;
  const int source = machines_[from].agent;
  const Commit newest = linked && source >= 0 ? NewestAt(agents_[source]) : Commit();
  if (newest.id > agent.kept.id) {
    agent.kept = newest;
    ++tally_.copies;
    TellKept(index);
  }
  if (closed && dice_.Chance(20)) TellUncopied(index);
  time_.After(dice_.Between(10 * kMilli, kSecond),
              [this, index, turn, from] { TakeCopies(index, turn, from); });
}

void ControlPlane::TellUncopied(int index) {
  const Agent& agent = agents_[index];
  SendUp(agent.stream,
         [this, index, host = machines_[agent.host].name, kept = NewestAt(agents_[index]).id] {
           agents_[index].told_kept = kept;
           Apply(rendezvous::membership::CommitKept{host, kept, "no answer in time"});
         });
}

void ControlPlane::TellKept(int index) {
  const Agent& agent = agents_[index];
  SendUp(agent.stream,
         [this, index, host = machines_[agent.host].name, kept = NewestAt(agents_[index]).id] {
           agents_[index].told_kept = kept;
           Apply(rendezvous::membership::CommitKept{host, kept});
         });
}

// The newest commit in the agent's memory: of its workers, or a copy.
ControlPlane::Commit ControlPlane::NewestAt(const Agent& agent) {
  Commit newest = agent.kept;
  for (const auto& [slot, commit] : agent.arenas) {
    if (commit.id > newest.id) newest = commit;
  }
  return newest;
}

// Before the end of a worker is reported, and when a copy was dropped.
void ControlPlane::TellLeft(int index) {
  const Agent& agent = agents_[index];
  SendUp(agent.stream,
         [this, index, host = machines_[agent.host].name, left = NewestAt(agents_[index]).id] {
           // What it has told before, which may have been under way when the copy was dropped, is
           // old.
           agents_[index].told_kept = std::min(agents_[index].told_kept, left);
           Apply(rendezvous::membership::CommitLeft{host, left});
         });
}

// As rank 0 of a world in which all get its state.
void ControlPlane::TakeKept(Process* process) {
  const Commit kept = NewestAt(agents_[process->agent]);
  if (kept.id <= process->commit.id) return;
  Log("worker ", process->id.value(), " takes over commit ", CommitText(kept.id));
  Seal(process, kept);
  ++tally_.copies_used;
}

// The commit that a world makes after this one.
ControlPlane::Commit ControlPlane::Next(const Commit& commit, uint64_t epoch) {
  return {CommitId(epoch, CommitNumber(commit.id) + 1), commit.content * 1000003 + epoch};
}

// The process has the commit, and so has its agent. Whoever has this commit has the same state.
void ControlPlane::Seal(Process* process, const Commit& commit) {
  process->commit = commit;
  if (commit.id == 0) return;
  agents_[process->agent].arenas[process->arena] = commit;
  const auto [known, is_new] = contents_.emplace(commit.id, commit.content);
  if (known->second != commit.content) {
    Fail(absl::StrCat("commit ", CommitText(commit.id), " of worker ", process->id.value(),
                      " is not the first of this name: there are two histories"));
  }
}

}  // namespace hvd
