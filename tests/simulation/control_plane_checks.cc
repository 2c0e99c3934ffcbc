// The checked properties; see control_plane.h.
#include <algorithm>

#include "tests/simulation/control_plane.h"
#include "tests/simulation/trace.h"

namespace hvd {

void ControlPlane::Tally::Add(const Tally& other) {
  runs += other.runs;
  successes += other.successes;
  worlds += other.worlds;
  events += other.events;
  faults += other.faults;
  rollbacks += other.rollbacks;
  restarts_of_daemon += other.restarts_of_daemon;
  released += other.released;
  evicted += other.evicted;
  planned_changes += other.planned_changes;
  crowded += other.crowded;
  shared += other.shared;
  held += other.held;
  copies += other.copies;
  copies_used += other.copies_used;
  checkpoints += other.checkpoints;
  checkpoints_used += other.checkpoints_used;
  takeovers += other.takeovers;
  lost += other.lost;
  went_on += other.went_on;
  closed_ways += other.closed_ways;
  rests += other.rests;
  left_commits += other.left_commits;
}

std::string ControlPlane::Tally::ToText() const {
  return absl::StrCat(
      runs, " jobs, ", crowded, " crowded, ", shared, " with several hosts on a machine, ",
      successes, " succeeded; ", worlds, " worlds, ", faults, " faults, ", planned_changes,
      " planned changes, ", rollbacks, " rollbacks, ", restarts_of_daemon,
      " restarts of the daemon, ", released, " released, ", evicted, " stopped at once, ", held,
      " held for an offer, ", copies, " copies, ", copies_used, " used, ", checkpoints,
      " checkpoints, ", checkpoints_used, " used, ", takeovers, " takeovers in an event, ", lost,
      " jobs lost as a whole, ", went_on, " went on from the checkpoint of another, ", closed_ways,
      " ways between hosts closed, ", rests, " rests, ", left_commits,
      " commits left on hosts that rest; ", events, " events\n");
}

void ControlPlane::Fail(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

int ControlPlane::FindHost(const std::string& name) const { return name[0] - 'a'; }

const ControlPlane::Process* ControlPlane::FindProcess(WorkerId worker) const {
  const auto found = by_worker_.find(worker.value());
  return found == by_worker_.end() ? nullptr : &processes_[found->second];
}

ControlPlane::Process* ControlPlane::FindProcess(WorkerId worker) {
  return const_cast<Process*>(std::as_const(*this).FindProcess(worker));
}

// After each event. A move that a worker's lifecycle does not have fails here as well.
void ControlPlane::CheckMachine() {
  const std::string broken = machine_->Check();
  if (!broken.empty()) Fail(absl::StrCat("the machine is inconsistent: ", broken));
}

void ControlPlane::CheckAnswered(uint64_t call, CallKind kind) {
  if (call == 0 || call > calls_.size()) return Fail("an answer to nobody");
  if (calls_[call - 1].answered) return Fail(absl::StrCat("call ", call, " is answered twice"));
  if (calls_[call - 1].kind != kind) Fail(absl::StrCat("call ", call, " gets a wrong answer"));
}

std::string ControlPlane::MachineOf(const std::string& host) const {
  const Machine& machine = machines_[FindHost(host)];
  return machine.machine.empty() ? host : machine.machine;
}

void ControlPlane::CheckAgentOf(const std::string& host, Incarnation agent) {
  const auto attached = attached_.find(host);
  if (attached == attached_.end() ||
      agents_[streams_[attached->second].agent].incarnation != agent) {
    Fail(absl::StrCat("a command for host ", host, ", whose agent is not there"));
  }
}

bool ControlPlane::InGoodStanding(const Process& process) const {
  const auto attached = attached_.find(machines_[process.host].name);
  return process.alive && !process.seen_gone && !process.seen_dying && !process.told_to_stop &&
         !process.released && !process.said_finished && !process.said_failed &&
         attached != attached_.end() && streams_[attached->second].agent == process.agent;
}

void ControlPlane::CheckNewWorld(const rendezvous::membership::World& world) {
  const uint64_t epoch = world.epoch.value();
  const auto known = groups_.find(epoch);
  if (known != groups_.end()) {
    const rendezvous::membership::World& first = known->second.world;
    const bool same = first.sync_state == world.sync_state &&
                      std::equal(first.members.begin(), first.members.end(), world.members.begin(),
                                 world.members.end(), [](const auto& a, const auto& b) {
                                   return a.worker.incarnation == b.worker.incarnation &&
                                          a.worker.id == b.worker.id &&
                                          a.place.rank == b.place.rank &&
                                          a.place.local_rank == b.place.local_rank;
                                 });
    if (!same || epoch != newest_world_->epoch.value())
      Fail("members have received different worlds");
    return;
  }
  const uint64_t previous = newest_world_.has_value() ? newest_world_->epoch.value() : 0;
  if (epoch != previous + 1) Fail(absl::StrCat("epoch ", epoch, " after ", previous));
  ++tally_.worlds;
  const int size = static_cast<int>(world.members.size());
  const int first = std::clamp(spec_.start_workers, min_workers_, max_workers_);
  const bool writes_only = stop_requested_ && previous > 0;  // in a job that ends, any size will do
  const int least = writes_only ? 1 : previous == 0 && !left_early_ ? first : min_workers_;
  const Machine& leading = machines_[FindHost(world.members[0].host)];
  const bool hands_over = size == 2 && (leading.leaving || leading.shrunk);
  if (size < least || (size > max_workers_ && !hands_over)) {
    Fail(absl::StrCat("a world of ", size));
  }
  CheckPlaces(world);
  if (wrong_.empty()) CheckSurvivors(world);
  if (wrong_.empty()) CheckHeldCommits(world);
  if (wrong_.empty() && newest_world_.has_value()) CheckWorldBeforeHasEnded();
  if (wrong_.empty() && newest_world_.has_value()) CheckOrder(world);
  Group& group = groups_[epoch];
  group.world = world;
  group.least = sure_checkpoint_.id;
  group.processes.assign(world.members.size(), -1);
  group.acting.assign(world.members.size(), false);
  newest_world_ = world;
}

// The world before can't complete another step, whatever its members assume: else two worlds would
// train.
void ControlPlane::CheckWorldBeforeHasEnded() {
  const Group& group = groups_[newest_world_->epoch.value()];
  const bool trains = std::all_of(group.processes.begin(), group.processes.end(), [&](int index) {
    if (index < 0) return false;
    const Process& process = processes_[index];
    const bool inside = process.phase == Phase::kConnecting || process.phase == Phase::kTraining;
    return process.alive && !process.frozen && inside &&
           process.epoch == newest_world_->epoch.value();
  });
  if (trains && !group.broken) Fail("the world before trains on");
}

// Whether the world may begin below this commit of the host: it may rest, and has one commit more.
bool ControlPlane::MayLeave(int host, uint64_t commit,
                            const rendezvous::membership::World& world) const {
  const uint64_t begins_with = CommitNumber(world.members[0].commit);
  return machines_[host].was_apart && CommitNumber(commit) <= begins_with + 1;
}

// An agent that the daemon has not lost keeps the commits of its workers when they die.
void ControlPlane::CheckHeldCommits(const rendezvous::membership::World& world) {
  for (const auto& [host, stream] : attached_) {
    const Agent& agent = agents_[streams_[stream].agent];
    if (!agent.alive || agent.told_to_end) continue;
    uint64_t newest = agent.told_kept;
    for (const auto& [slot, commit] : agent.arenas) newest = std::max(newest, commit.id);
    if (newest > world.members[0].commit && MayLeave(agent.host, newest, world)) {
      ++tally_.left_commits;
    } else if (newest > world.members[0].commit) {
      Fail(absl::StrCat("a world begins with commit ", CommitText(world.members[0].commit),
                        ", but host ", host, " has commit ", CommitText(newest)));
    }
  }
}

void ControlPlane::CheckLeaver(const std::string& host) {
  if (!has_copies_ || stop_requested_ || !wrong_.empty() || verdict_.has_value()) return;
  // What the daemon has been told: a copy that has gone further since is newer than what it counts
  // on.
  const Agent& agent = agents_[streams_[attached_[host]].agent];
  uint64_t newest = agent.told_kept;
  for (const auto& [slot, commit] : agent.arenas) newest = std::max(newest, commit.id);
  const Machine& leaver = machines_[FindHost(host)];
  if (newest == 0 || !leaver.leaving || time_.now() >= leaver.leaves_by) return;
  for (const Process& process : processes_) {
    const bool is_last = newest_world_.has_value() && process.epoch == newest_world_->epoch.value();
    if (is_last && process.said_finished) return;  // the job is about to end
  }
  bool may_copy = false;
  for (const auto& [name, stream] : attached_) {
    // An agent that has just died is there to the daemon's knowledge.
    if (name == host || agents_[streams_[stream].agent].told_to_end) continue;
    may_copy = may_copy || !machines_[FindHost(name)].leaving;
    if (NewestAt(agents_[streams_[stream].agent]).id >= newest) return;
  }
  const bool is_written = checkpoint_.id >= newest;
  if (may_copy || !is_written)
    Fail(absl::StrCat("host ", host, " takes commit ", CommitText(newest), " along"));
}

// A worker whose world is confirmed as the newest may let commits count.
void ControlPlane::CheckConfirmed(uint64_t call) {
  const Process& process = processes_[calls_[call - 1].process];
  const bool over = verdict_.has_value() && verdict_->success;
  if (!over && newest_world_->epoch.value() != process.epoch) Fail("an old world is confirmed");
}

void ControlPlane::CheckPlaces(const rendezvous::membership::World& world) {
  std::map<std::string, std::set<int>> local_ranks;  // by machine
  std::string last;
  for (size_t rank = 0; rank < world.members.size(); ++rank) {
    const rendezvous::membership::WorldMember& member = world.members[rank];
    if (member.place.rank != static_cast<int>(rank)) Fail("ranks are not in order");
    const std::string machine = MachineOf(member.host);
    if (machine != last && local_ranks.count(machine) > 0) Fail("a machine's ranks are apart");
    last = machine;
    if (!local_ranks[machine].insert(member.place.local_rank).second)
      Fail("a local rank held twice");
    Process* process = FindProcess(member.worker.id);
    if (process == nullptr || process->incarnation != member.worker.incarnation) {
      return Fail(absl::StrCat("rank ", rank, " is nobody"));
    }
    if (process->seen_gone || process->seen_dying || process->told_to_stop || process->released) {
      return Fail(absl::StrCat("rank ", rank, " has gone"));
    }
    // Rank 0 may be on such a host, to pass its state on; all may in a job that ends.
    if (rank > 0 && machines_[process->host].leaving && !stop_requested_)
      Fail(absl::StrCat("rank ", rank, " is on host ", member.host, ", which leaves"));
    CheckSlot(member, process);
    if (machines_[process->host].name != member.host) Fail("a rank on another host than its own");
  }
  for (const rendezvous::membership::WorldMember& member : world.members) {
    const std::set<int>& local = local_ranks[MachineOf(member.host)];
    const int size = static_cast<int>(local.size());
    if (*local.begin() != 0 || *local.rbegin() != size - 1 || member.place.local_size != size) {
      Fail(absl::StrCat("local ranks beside host ", member.host, "'s are not dense"));
    }
  }
}

// A worker keeps its slot. On a full host that has a machine for itself this is visible: local
// ranks are the slots.
void ControlPlane::CheckSlot(const rendezvous::membership::WorldMember& member, Process* process) {
  const Machine& machine = machines_[process->host];
  if (!machine.machine.empty()) return;
  if (machine.resized || member.place.local_size != machine.slots) return;
  if (process->slot < 0) process->slot = member.place.local_rank;
  if (process->slot != member.place.local_rank) {
    Fail(absl::StrCat("worker ", process->id.value(), " has changed its slot"));
  }
}

void ControlPlane::CheckSurvivors(const rendezvous::membership::World& world) {
  std::map<uint64_t, const rendezvous::membership::WorldMember*> members;
  const uint64_t newest = world.members[0].commit;
  for (const rendezvous::membership::WorldMember& member : world.members) {
    members[member.worker.id.value()] = &member;
    if (member.commit > newest) Fail("rank 0 does not hold the newest commit");
    if (!world.sync_state && member.commit != newest)
      Fail("a rank lacks a state that nobody gives");
  }
  if (!newest_world_.has_value()) return;
  for (const rendezvous::membership::WorldMember& member : newest_world_->members) {
    const Process* process = FindProcess(member.worker.id);
    if (process == nullptr || !InGoodStanding(*process)) continue;
    const bool stays = members.count(member.worker.id.value()) > 0;
    const Machine& machine = machines_[process->host];
    const std::string who = absl::StrCat("worker ", process->id.value());
    const bool full = static_cast<int>(world.members.size()) >= max_workers_;
    const bool may_rest = machine.was_apart;
    if (!stays && !full && !machine.leaving && !machine.shrunk && !may_rest)
      Fail(who + " was forgotten");
    if (process->commit.id > newest && !MayLeave(process->host, process->commit.id, world))
      Fail(absl::StrCat(who, "'s commit ", CommitText(process->commit.id), " is lost"));
  }
}

// Members of the world before keep their order, except that rank 0's machine comes first, and rank
// 0 first on it.
void ControlPlane::CheckOrder(const rendezvous::membership::World& world) {
  std::map<uint64_t, const rendezvous::membership::WorldMember*> before;
  for (const rendezvous::membership::WorldMember& member : newest_world_->members) {
    // A worker that has reported a failure and then joins nevertheless is a newcomer.
    const Process* process = FindProcess(member.worker.id);
    if (process != nullptr && process->said_failed) continue;
    before[member.worker.id.value()] = &member;
  }
  const std::string leading = MachineOf(world.members[0].host);
  int newest_there = -1, newest_elsewhere = -1;
  std::map<std::string, std::map<int, int>> local_ranks;  // by machine: before to now
  for (const rendezvous::membership::WorldMember& member : world.members) {
    const auto was = before.find(member.worker.id.value());
    if (was == before.end()) continue;
    const std::string machine = MachineOf(member.host);
    local_ranks[machine][was->second->place.local_rank] = member.place.local_rank;
    if (member.place.rank == 0) continue;
    int& newest = machine == leading ? newest_there : newest_elsewhere;
    if (was->second->place.rank < newest) Fail("survivors have changed places");
    newest = was->second->place.rank;
  }
  for (const auto& [machine, ranks] : local_ranks) {
    int newest = -1;
    for (const auto& [old_rank, new_rank] : ranks) {
      if (new_rank < newest) Fail("survivors have changed places on machine " + machine);
      newest = new_rank;
    }
  }
}

}  // namespace hvd
