// Workers that behave as the Python wrapper makes them, and their collectives.
#include <algorithm>
#include <utility>

#include "tests/simulation/control_plane.h"
#include "tests/simulation/trace.h"

namespace hvd {
namespace {

constexpr Micros kUnavailable = 3 * kSecond;  // until a cut connection is noticed
constexpr Micros kCollectiveTimeout = 20 * kSecond;
constexpr Micros kConnectTimeout = 40 * kSecond;
constexpr Micros kProgressPause = 2 * kSecond;

}  // namespace

void ControlPlane::Ask(
    int index, CallKind kind,
    std::function<rendezvous::membership::Event(rendezvous::membership::CallId)> event) {
  Process& process = processes_[index];
  calls_.emplace_back();
  const uint64_t id = calls_.size();
  calls_.back().process = index;
  calls_.back().kind = kind;
  calls_.back().turn = process.turn;
  process.calls.push_back(id);
  time_.After(Delay(), [this, id, event = std::move(event)] {
    Call& call = calls_[id - 1];
    if (call.over) return;
    const Machine& machine = machines_[processes_[call.process].host];
    if (!daemon_alive_) {
      time_.After(Delay(), [this, id] { FailCall(id); });
    } else if (machine.cut_up) {
      time_.After(kUnavailable, [this, id] { FailCall(id); });
    } else {
      call.at_daemon = true;
      call.life = daemon_life_;
      Log("worker ", processes_[call.process].id.value(), " calls (", id, ")");
      Apply(event(rendezvous::membership::CallId(id)));
    }
  });
}

// Unavailable: repeats the call a little later, unless it does not matter any more.
void ControlPlane::FailCall(uint64_t id) {
  Call& call = calls_[id - 1];
  if (call.over) return;
  call.over = true;
  const int index = call.process;
  Process& process = processes_[index];
  process.calls.erase(std::remove(process.calls.begin(), process.calls.end(), id),
                      process.calls.end());
  if (call.at_daemon && !call.answered) {
    time_.After(Delay(), [this, id] {
      const Call& known = calls_[id - 1];
      if (daemon_alive_ && known.life == daemon_life_ && !known.answered) {
        Apply(rendezvous::membership::CallCancelled{rendezvous::membership::CallId(id)});
      }
    });
  }
  if (call.turn != process.turn) return;
  const CallKind kind = call.kind;
  Later(index, dice_.Between(100 * kMilli, kSecond), [this, index, kind] {
    if (kind == CallKind::kJoin) Join(index, processes_[index].defers);
    if (kind == CallKind::kWatch) Watch(index);
    if (kind == CallKind::kExchange) ExchangeAddresses(index);
    if (kind == CallKind::kReport && !processes_[index].threw) ReportFinished(index);
    if (kind == CallKind::kConfirm) HearConfirmed(index, false);
  });
}

void ControlPlane::Answer(rendezvous::membership::CallId call, CallKind kind,
                          std::function<void(int)> action) {
  const uint64_t id = call.value();
  CheckAnswered(id, kind);
  if (!wrong_.empty()) return;
  calls_[id - 1].answered = true;
  time_.After(Delay(), [this, id, action = std::move(action)] {
    Call& known = calls_[id - 1];
    if (known.over || known.life != daemon_life_) return;
    Process& process = processes_[known.process];
    if (machines_[process.host].cut_down) {
      time_.After(kUnavailable, [this, id] { FailCall(id); });
      return;
    }
    known.over = true;
    process.calls.erase(std::remove(process.calls.begin(), process.calls.end(), id),
                        process.calls.end());
    if (process.alive && !process.frozen && process.turn == known.turn) action(known.process);
  });
}

// The process has ended, and the daemon notices that its connections close.
void ControlPlane::DropCalls(int index, bool host_gone) {
  for (const uint64_t id : std::exchange(processes_[index].calls, {})) {
    calls_[id - 1].over = true;
    if (!calls_[id - 1].at_daemon || calls_[id - 1].answered) continue;
    time_.After(host_gone ? 10 * kSecond : Delay(), [this, id] {
      const Call& known = calls_[id - 1];
      if (daemon_alive_ && known.life == daemon_life_ && !known.answered) {
        Apply(rendezvous::membership::CallCancelled{rendezvous::membership::CallId(id)});
      }
    });
  }
}

// Runs `action` later, unless something else comes first.
void ControlPlane::Later(int index, Micros delay, std::function<void()> action) {
  time_.After(delay, [this, index, turn = processes_[index].turn, action = std::move(action)] {
    const Process& process = processes_[index];
    if (process.alive && !process.frozen && process.turn == turn) action();
  });
}

void ControlPlane::Join(int index, bool may_defer) {
  Process& process = processes_[index];
  process.phase = Phase::kJoining;
  process.defers = may_defer;
  Ask(index, CallKind::kJoin, [this, index, may_defer](rendezvous::membership::CallId call) {
    const Process& asking = processes_[index];
    return rendezvous::membership::JoinRequested{call,
                                                 {asking.id, asking.incarnation},
                                                 Epoch(asking.epoch),
                                                 "10.0.0.1",
                                                 4000,
                                                 may_defer,
                                                 asking.commit.id,
                                                 asking.worked,
                                                 asking.gave_up ? "collectives hang" : "",
                                                 asking.in_step ? 1U : 0U,
                                                 absl::Microseconds(step_time_),
                                                 false,
                                                 asking.unreached};
  });
}

void ControlPlane::Watch(int index) {
  Ask(index, CallKind::kWatch, [this, index](rendezvous::membership::CallId call) {
    const Process& asking = processes_[index];
    return rendezvous::membership::WatchRequested{
        call, {asking.id, asking.incarnation}, Epoch(asking.epoch), asking.knows_of_change};
  });
}

// The worker has received its world.
void ControlPlane::Enter(int index, const rendezvous::membership::World& world) {
  Process& process = processes_[index];
  ++process.turn;
  const bool is_new = process.epoch == 0;
  process.epoch = world.epoch.value();
  process.knows_of_change = process.worked = process.gave_up = false;
  process.began_with.reset();
  process.unreached.reset();
  process.operation = 0;
  process.phase = Phase::kConnecting;
  Group& group = groups_[process.epoch];
  for (const rendezvous::membership::WorldMember& member : world.members) {
    if (member.worker.id != process.id) continue;
    process.rank = member.place.rank;
    if (member.worker.incarnation != process.incarnation) Fail("a world for another process");
    if (group.acting[member.place.rank])
      Fail(absl::StrCat("rank ", member.place.rank, " is held twice"));
    group.acting[member.place.rank] = true;
    group.processes[member.place.rank] = index;
  }
  if (!world.sync_state && (is_new || process.in_step)) {
    Fail(absl::StrCat("rank ", process.rank, " needs the state, but the world says otherwise"));
  }
  if (process.rank == 0 && world.sync_state) TakeKept(&process);
  process.loaded = Commit();
  const bool missed_world = process.had_in_world > 0 && process.had_in_world + 1 < process.epoch;
  const bool may_be_behind = !process.has_synced || missed_world;
  if (process.rank == 0 && world.sync_state && may_be_behind) LoadCheckpoint(&process);
  if (process.rank == 0 && process.commit.id < world.members[0].commit) {
    Fail("rank 0 does not hold the commit that the world begins with");
  }
  Watch(index);
  ExchangeAddresses(index);
  if (process.rank == 0) Later(index, kProgressPause, [this, index] { ReportProgress(index); });
  Later(index, kConnectTimeout, [this, index] {
    processes_[index].gave_up = processes_[index].operation == 0;
    if (processes_[index].gave_up) Abort(index);
  });
}

void ControlPlane::ExchangeAddresses(int index) {
  Ask(index, CallKind::kExchange, [this, index](rendezvous::membership::CallId call) {
    const Process& asking = processes_[index];
    return rendezvous::membership::ExchangeRequested{
        call, {asking.id, asking.incarnation}, Epoch(asking.epoch), "mesh", "x"};
  });
}

void ControlPlane::Hear(int index, const rendezvous::membership::ReplyWatch& reply) {
  Process& process = processes_[index];
  if (process.phase != Phase::kConnecting && process.phase != Phase::kTraining) return;
  if (reply.change == rendezvous::membership::EpochChange::kChanging) {
    process.knows_of_change = true;
    return Watch(index);
  }
  if (reply.change == rendezvous::membership::EpochChange::kBroken) return Abort(index);
  ++process.turn;
  process.phase = Phase::kEnding;
  Later(index, dice_.Between(100 * kMilli, kSecond),
        [this, index] { Die(index, OwnExitCode(index), 0); });
}

void ControlPlane::HearStatus(int index, CallKind kind, const absl::Status& status) {
  Process& process = processes_[index];
  if (kind == CallKind::kReport) {
    if (!process.threw) {
      Later(index, dice_.Between(kMilli, 2 * kSecond), [this, index] { Die(index, 0, 0); });
    }
    return;
  }
  if (kind == CallKind::kConfirm) return HearConfirmed(index, status.ok());
  if (kind == CallKind::kProgress) return;  // its watch reports the change
  if (kind == CallKind::kExchange) return Abort(index);
  if (status.code() == absl::StatusCode::kCancelled) return;  // another call took its place
  if (kind == CallKind::kWatch) return Abort(index);
  ++process.turn;
  process.phase = Phase::kEnding;
  Later(index, dice_.Between(kMilli, 100 * kMilli),
        [this, index] { Die(index, OwnExitCode(index), 0); });
}

// The worker has reached its next collective.
void ControlPlane::Submit(int index, Operation kind) {
  Process& process = processes_[index];
  Group& group = groups_[process.epoch];
  process.phase = Phase::kTraining;
  if (kind == Operation::kConnect) process.phase = Phase::kConnecting;
  const bool trains = kind != Operation::kConnect && kind != Operation::kSync;
  if (trains && !process.began_with.has_value()) process.began_with = process.commit.id;
  if (trains) process.had_in_world = process.epoch;
  if (trains && *process.began_with < group.least) {
    return Fail(absl::StrCat("training goes on from commit ", CommitText(*process.began_with),
                             ", but a checkpoint has commit ", CommitText(group.least)));
  }
  if (group.operation != process.operation) return Fail("a collective was left out");
  if (group.arrived > 0 && group.kind != kind) {
    return Fail(absl::StrCat("in epoch ", process.epoch, " rank ", process.rank,
                             " does another collective than the others"));
  }
  group.kind = kind;
  ++group.arrived;
  group.any_changing = group.any_changing || process.knows_of_change;
  if (kind == Operation::kSync && process.rank == 0)
    group.commit = process.loaded.id > process.commit.id ? process.loaded : process.commit;
  Later(index, kCollectiveTimeout, [this, index, operation = process.operation] {
    Process& waiting = processes_[index];
    waiting.gave_up = waiting.operation == operation;
    if (!waiting.gave_up) return;
    const int rank = UnreachedBy(waiting);
    if (rank >= 0 && dice_.Chance(50)) waiting.unreached = rank;
    Abort(index);
  });
  if (kind == Operation::kConnect) GiveUpConnecting(index);
  TryComplete(&group);
}

// A host at the other end of a closed way is not reached.
void ControlPlane::GiveUpConnecting(int index) {
  Later(index, dice_.Between(kSecond, 5 * kSecond), [this, index] {
    Process& process = processes_[index];
    const int rank = UnreachedBy(process);
    if (process.operation > 0 || rank < 0) return;
    process.gave_up = true;
    process.unreached = rank;
    Abort(index);
  });
}

void ControlPlane::TryComplete(Group* group) {
  if (group->broken || group->arrived < static_cast<int>(group->processes.size())) return;
  if (group->arrived == 0 || SpansClosedWay(*group)) return;
  const Operation kind = group->kind;
  const bool changing = kind == Operation::kCommit && group->any_changing;
  const bool torn = kind == Operation::kCommit && TearCommit(*group);
  for (const int process : group->processes) {
    Later(process, dice_.Between(kMilli / 2, torn ? 100 * kMilli : 5 * kMilli),
          [this, process, kind, commit = group->commit, changing] {
            Complete(process, kind, commit, changing);
          });
  }
  ++group->operation;
  group->arrived = 0;
  group->any_changing = false;
}

void ControlPlane::Complete(int index, Operation kind, const Commit& commit, bool changing) {
  Process& process = processes_[index];
  ++process.operation;
  if (kind == Operation::kBarrier) {
    ++process.turn;
    process.phase = Phase::kEnding;
    return Later(index, dice_.Between(0, 50 * kMilli), [this, index] { ReportFinished(index); });
  }
  if (kind == Operation::kSync) {
    if (process.commit.id > commit.id)
      Fail(absl::StrCat("commit ", CommitText(process.commit.id), " was rolled back"));
    Seal(&process, commit);
  }
  if (kind == Operation::kStep) process.in_step = process.worked = true;
  if (kind == Operation::kSync) process.in_step = false;
  if (kind == Operation::kSync || kind == Operation::kCommit) process.has_synced = true;
  if (kind == Operation::kCommit) {
    Seal(&process, Next(process.commit, process.epoch));
    process.in_step = false;
    CountReturned(process);
    if (process.rank == 0) Write(index, process.commit);
    if (changing) {
      ++process.turn;
      return Join(index, false);
    }
  }
  NextOperation(index);
}

// The same on every rank, since all have the same state.
void ControlPlane::NextOperation(int index) {
  Process& process = processes_[index];
  const Group& group = groups_[process.epoch];
  if (process.operation == 1 && group.world.sync_state) return Submit(index, Operation::kSync);
  if (process.in_step) return Submit(index, Operation::kCommit);
  if (CommitNumber(process.commit.id) >= goal_) return Submit(index, Operation::kBarrier);
  Later(index, step_time_ + dice_.Between(0, step_time_ / 4),
        [this, index] { Submit(index, Operation::kStep); });
}

// Collectives fail: back to the newest commit, and to the next world.
void ControlPlane::Abort(int index) {
  Process& process = processes_[index];
  if (process.phase != Phase::kConnecting && process.phase != Phase::kTraining) return;
  ++process.turn;
  ++tally_.rollbacks;
  if (gentle_ && !hurried_)
    Fail(absl::StrCat("worker ", process.id.value(), " rolls back for a planned change"));
  Log("worker ", process.id.value(), " rolls back to commit ", CommitText(process.commit.id));
  process.in_step = false;
  process.phase = Phase::kJoining;
  BreakGroup(process.epoch, index);
  Later(index, dice_.Between(kMilli, 100 * kMilli), [this, index] { Join(index, false); });
}

// Two equal failures would count as a mistake of the user's.
int ControlPlane::OwnExitCode(int index) const {
  return forgiving_ ? 1 + static_cast<int>(processes_[index].id.value() % 200) : 1;
}

// The other workers see its connections close.
void ControlPlane::BreakGroup(uint64_t epoch, int except) {
  Group& group = groups_[epoch];
  if (std::exchange(group.broken, true)) return;
  for (const int member : group.processes) {
    if (member < 0 || member == except || dice_.Chance(20)) continue;
    Later(member, dice_.Between(100, 20 * kMilli), [this, member, epoch] {
      if (processes_[member].epoch == epoch) Abort(member);
    });
  }
}

void ControlPlane::ReportFinished(int index) {
  Ask(index, CallKind::kReport, [this, index](rendezvous::membership::CallId call) {
    const Process& asking = processes_[index];
    return rendezvous::membership::Reported{
        call, {asking.id, asking.incarnation}, Epoch(asking.epoch), true, "", false};
  });
}

// Called while it is rank 0 of this world.
void ControlPlane::ReportProgress(int index) {
  const Phase phase = processes_[index].phase;
  if (phase != Phase::kConnecting && phase != Phase::kTraining) return;
  Ask(index, CallKind::kProgress, [this, index](rendezvous::membership::CallId call) {
    return Progress(call, processes_[index]);
  });
  Later(index, kProgressPause, [this, index] { ReportProgress(index); });
}

// An exception of the user's script.
void ControlPlane::ThrowException(int index, const std::string& text) {
  Process& process = processes_[index];
  if (!process.alive || process.frozen || process.phase == Phase::kEnding) return;
  Log("worker ", process.id.value(), " throws ", text);
  const bool may_hang = SomebodyElseTrains(index) && CommitNumber(process.commit.id) + 1 < goal_;
  if (process.epoch > 0 && process.phase != Phase::kJoining) BreakGroup(process.epoch, index);
  ++process.turn;
  process.phase = Phase::kEnding;
  process.threw = true;
  Ask(index, CallKind::kReport, [this, index, text](rendezvous::membership::CallId call) {
    const Process& asking = processes_[index];
    return rendezvous::membership::Reported{call,
                                            {asking.id, asking.incarnation},
                                            Epoch(asking.epoch),
                                            false,
                                            text,
                                            false,
                                            agents_[asking.agent].arenas[asking.arena].id};
  });
  if (may_hang && dice_.Chance(10)) return;  // its end does, and the others see to it
  Later(index, dice_.Between(10 * kMilli, 500 * kMilli),
        [this, index] { Die(index, OwnExitCode(index), 0); });
}

}  // namespace hvd
