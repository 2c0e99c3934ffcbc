// A run, and the daemon in it.
#include "tests/simulation/control_plane.h"

#include <algorithm>
#include <variant>

#include "proto/snapshot.pb.h"
#include "tests/simulation/trace.h"

namespace hvd {
namespace {

// Longer than every deadline of the machine after the last fault.
constexpr Micros kPatience = 1200 * kSecond;
// The time for agents to end after the job, even if they are out of reach.
constexpr Micros kWindUp = 120 * kSecond;

}  // namespace

ControlPlane::ControlPlane(uint64_t seed, bool traced, const Commit& found)
    : traced_(traced), dice_(seed), checkpoint_(found), sure_checkpoint_(found) {
  tally_.runs = 1;
  tally_.went_on = found.id > 0 ? 1 : 0;
  SetUp();
}

void ControlPlane::SetUp() {
  gentle_ = dice_.Chance(25);
  forgiving_ = gentle_ || dice_.Chance(60);
  discovery_ = dice_.Chance(60);
  offers_ = discovery_ && dice_.Chance(40);
  recovers_ = forgiving_ || dice_.Chance(90);
  has_twins_ = dice_.Chance(20);
  has_copies_ = dice_.Chance(70);
  has_checkpoints_ = checkpoint_.id > 0 || dice_.Chance(50);
  writes_fail_ = has_checkpoints_ && dice_.Chance(30);
  contents_[checkpoint_.id] = checkpoint_.content;
  goal_ = CommitNumber(checkpoint_.id) + static_cast<uint64_t>(dice_.Between(3, 30));
  step_time_ = dice_.Between(20, 900) * kMilli;
  const int hosts = static_cast<int>(dice_.Between(1, 4));
  const bool shared = dice_.Chance(30);
  tally_.shared = shared ? 1 : 0;
  for (int host = 0; host < hosts; ++host) {
    Machine machine;
    machine.name = std::string(1, static_cast<char>('a' + host));
    machine.slots = static_cast<int>(dice_.Between(1, 3));
    machine.capacity = static_cast<int>(dice_.Between(machine.slots, 4));
    if (shared) machine.machine = dice_.Chance(60) ? "m" : "n";
    machines_.push_back(machine);
    listed_.insert(machine.name);
  }
  spec_ = MakeSpec();
  min_workers_ = spec_.min_workers;
  max_workers_ = spec_.max_workers;
  if (dice_.Chance(25)) {
    throttle_ = {dice_.Between(1, 4), absl::Milliseconds(dice_.Between(1, 100))};
    tally_.crowded = 1;
  }
  machine_ = std::make_unique<rendezvous::membership::Membership>(spec_, Time(), throttle_);
  Log("job of ", spec_.start_workers, " workers, ", spec_.min_workers, " to ", spec_.max_workers,
      ", ", spec_.elastic->spares, " spares, ", goal_, " commits; ",
      gentle_      ? "gentle"
      : forgiving_ ? "forgiving"
                   : "strict",
      offers_      ? ", offered hosts"
      : discovery_ ? ", discovered hosts"
                   : "");
  if (discovery_) time_.After(0, [this] { Discover(); });
  for (int host = 0; host < hosts; ++host) {
    time_.After(dice_.Between(0, kSecond), [this, host] { StartAgent(host); });
  }
  time_.After(2 * kSecond, [this] { LauncherRound(); });
  PlanFaults();
}

rendezvous::policy::JobSpec ControlPlane::MakeSpec() {
  rendezvous::policy::JobSpec spec;
  int slots = 0;
  for (const Machine& machine : machines_) {
    slots += machine.slots;
    if (!discovery_) spec.expected_hosts.push_back({machine.name, machine.slots});
  }
  spec.start_workers = static_cast<int>(dice_.Between(1, slots));
  spec.min_workers = static_cast<int>(dice_.Between(1, spec.start_workers));
  spec.max_workers = static_cast<int>(dice_.Between(spec.start_workers, slots + 1));
  rendezvous::policy::ElasticSpec elastic;
  elastic.spares = dice_.Chance(20) ? 1 : 0;
  elastic.elastic_timeout = absl::Minutes(5);
  elastic.rejoin_timeout = absl::Seconds(dice_.Between(10, 60));
  elastic.join_delay = absl::Milliseconds(dice_.Between(0, 500));
  elastic.drain_grace = absl::Seconds(dice_.Between(gentle_ ? 20 : 5, 40));
  if (forgiving_) {
    elastic.budget.failures = 10000;
    elastic.failures_without_progress = 10000;
  } else {
    elastic.budget.failures = static_cast<int>(dice_.Between(1, 20));
    if (dice_.Chance(10)) elastic.reset_limit = static_cast<int>(dice_.Between(1, 5));
    if (dice_.Chance(20)) elastic.cooldown = rendezvous::policy::Cooldown();
  }
  spec.elastic = elastic;
  return spec;
}

std::string ControlPlane::Run() {
  const auto limit = [this] {
    if (verdict_.has_value()) return last_fault_ + kPatience + kWindUp;
    return last_fault_ + kPatience;
  };
  while (wrong_.empty() && !is_lost_ && time_.RunNext()) {
    if (time_.now() > limit()) break;
  }
  if (wrong_.empty() && !is_lost_) wrong_ = CheckEnd();
  if (!wrong_.empty()) Log("WRONG: ", wrong_);
  return wrong_;
}

std::string ControlPlane::CheckEnd() const {
  if (!verdict_.has_value()) return absl::StrCat("the job hangs: ", machine_->Explain());
  for (const Process& process : processes_) {
    if (process.alive) return absl::StrCat("worker ", process.id.value(), " was left behind");
  }
  for (const Agent& agent : agents_) {
    if (agent.alive) return absl::StrCat("the agent on ", machines_[agent.host].name, " was left");
  }
  if (verdict_->success) return "";
  const bool excused = stop_requested_ || !recovers_ || EndedInTheMiddleOfFinishing();
  if (forgiving_ && !excused) return "everything was to be forgiven, but " + verdict_->summary;
  return "";
}

// No member could go on: some had finished, the others had failed.
bool ControlPlane::EndedInTheMiddleOfFinishing() const {
  bool some_finished = false, some_failed = false;
  if (!newest_world_.has_value()) return false;
  for (const rendezvous::membership::WorldMember& member : newest_world_->members) {
    const Process* process = FindProcess(member.worker.id);
    const bool finished = process->said_finished && process->exit_code == 0 && process->signal == 0;
    some_finished = some_finished || process->said_finished;
    some_failed = some_failed || !finished;
  }
  return some_finished && some_failed;
}

// The daemon's loop around the machine. An event is journaled before it is applied.
void ControlPlane::Apply(const rendezvous::membership::Event& event) {
  NoteEvent(event);
  ++tally_.events;
  journal_.emplace_back(event, Time());
  const std::vector<rendezvous::membership::Effect> effects = ApplyToBoth(event);
  if (std::exchange(is_replaced_next_, false)) return TakeOver(effects);
  const bool is_watch = std::holds_alternative<rendezvous::membership::WatchRequested>(event);
  for (const rendezvous::membership::Effect& effect : effects) {
    if (traced_) Log("    ", ToText(effect));
    const bool is_answer = std::holds_alternative<rendezvous::membership::ReplyWatch>(effect) ||
                           std::holds_alternative<rendezvous::membership::ReplyStatus>(effect);
    if (is_watch && !is_answer) Fail("a watch, which is not recorded, has changed the job");
    Carry(effect);
  }
  CheckMachine();
  // A watch does nothing that is due: the tick of this very moment follows.
  if (!is_watch && machine_->NextDeadline() <= Time()) Fail("the next deadline does not lie ahead");
  if (dice_.Chance(3) && machine_->NextDeadline() > Time()) ProbeEarlyTick();
  if (dice_.Chance(2)) SaveAndLoad();
  ArmTick();
}

std::vector<rendezvous::membership::Effect> ControlPlane::ApplyToBoth(
    const rendezvous::membership::Event& event) {
  std::vector<rendezvous::membership::Effect> effects = machine_->Apply(event, Time());
  if (twin_ == nullptr) return effects;
  const std::vector<rendezvous::membership::Effect> twins = twin_->Apply(event, Time());
  const bool same =
      std::equal(effects.begin(), effects.end(), twins.begin(), twins.end(),
                 [](const rendezvous::membership::Effect& a,
                    const rendezvous::membership::Effect& b) { return ToText(a) == ToText(b); });
  if (!same || twin_->NextDeadline() != machine_->NextDeadline()) {
    Fail("a machine that was saved and loaded does something else");
  }
  return effects;
}

absl::StatusOr<std::unique_ptr<rendezvous::membership::Membership>> ControlPlane::Load() const {
  pb::journal::MembershipState saved;
  if (!saved.ParseFromString(snapshot_)) return absl::DataLossError("what was saved is no message");
  return rendezvous::membership::Membership::Load(spec_, saved, throttle_);
}

// Replaces the journal by a snapshot and makes a new twin; the twin before was in step until now.
void ControlPlane::SaveAndLoad() {
  snapshot_ = machine_->Save().SerializeAsString();
  journal_.clear();
  if (twin_ != nullptr && twin_->Save().SerializeAsString() != snapshot_)
    Fail("a twin has come to another state");
  if (!has_twins_) return;
  auto loaded = Load();
  if (!loaded.ok()) return Fail(loaded.status().ToString());
  twin_ = *std::move(loaded);
  if (twin_->Save().SerializeAsString() != snapshot_) Fail("what was loaded is not what was saved");
}

void ControlPlane::ProbeEarlyTick() {
  const absl::Time deadline = machine_->NextDeadline();
  journal_.emplace_back(rendezvous::membership::Tick{}, Time());
  if (!ApplyToBoth(rendezvous::membership::Tick{}).empty())
    Fail("a tick before its time had effects");
  if (machine_->NextDeadline() != deadline) Fail("a tick before its time moved the deadline");
}

// What the checks need of an effect that was not carried out: the daemon has decided nevertheless.
void ControlPlane::NoteDecision(const rendezvous::membership::Effect& effect) {
  if (const auto* world = std::get_if<rendezvous::membership::ReplyWorld>(&effect)) {
    CheckNewWorld(*world->world);
  } else if (const auto* released = std::get_if<rendezvous::membership::ReplyReleased>(&effect)) {
    processes_[calls_[released->call.value() - 1].process].released = true;
  } else if (const auto* start = std::get_if<rendezvous::membership::StartWorkerEffect>(&effect)) {
    asked_for_.insert(start->worker.value());
  } else if (const auto* stop = std::get_if<rendezvous::membership::StopWorkersEffect>(&effect)) {
    hurried_ = true;
    for (const WorkerId worker : stop->workers) {
      if (Process* process = FindProcess(worker)) process->told_to_stop = true;
    }
  }
}

// The leading daemon has written the event, and is replaced before it has carried out all effects.
// A standby daemon reads the journal when it takes over.
void ControlPlane::TakeOver(const std::vector<rendezvous::membership::Effect>& effects) {
  ++tally_.takeovers;
  const bool ends =
      std::any_of(effects.begin(), effects.end(), [](const rendezvous::membership::Effect& effect) {
        return std::holds_alternative<rendezvous::membership::JobFinished>(effect);
      });
  // The end of the job is in the journal: whoever reads it ends as well.
  const auto count = static_cast<int64_t>(effects.size());
  const int64_t carried = ends ? count : dice_.Between(0, count);
  for (int64_t i = 0; i < carried; ++i) {
    if (traced_) Log("    ", ToText(effects[i]));
    Carry(effects[i]);
  }
  for (int64_t i = carried; i < count; ++i) NoteDecision(effects[i]);
  CheckMachine();
  if (!ends) KillDaemon(dice_.Between(kMilli, 5 * kSecond));
}

// Collects the facts that the checks need.
void ControlPlane::NoteEvent(const rendezvous::membership::Event& event) {
  if (const auto* lost = std::get_if<rendezvous::membership::HostLost>(&event)) {
    Machine& machine = machines_[FindHost(lost->host)];
    machine.drained = false;  // a drain ends with the loss
    machine.leaving = discovery_ && listed_.count(machine.name) == 0;
    for (Process& process : processes_) {
      if (agents_[process.agent].incarnation == lost->agent) process.seen_gone = true;
    }
  } else if (const auto* joined = std::get_if<rendezvous::membership::HostJoined>(&event)) {
    Machine& machine = machines_[FindHost(joined->host.host)];
    if (machine.heard_of != joined->agent) {
      machine.drained = false;
      machine.leaving = discovery_ && listed_.count(machine.name) == 0;
      for (Process& process : processes_) {
        const bool of_another = agents_[process.agent].incarnation != joined->agent;
        if (&machines_[process.host] == &machine && of_another) process.seen_gone = true;
      }
    }
    machine.heard_of = joined->agent;
  } else if (const auto* exited = std::get_if<rendezvous::membership::WorkerExited>(&event)) {
    if (Process* process = FindProcess(exited->worker)) process->seen_gone = true;
  } else if (const auto* dying = std::get_if<rendezvous::membership::WorkerDying>(&event)) {
    if (Process* process = FindProcess(dying->worker)) process->seen_dying = true;
  } else if (const auto* said = std::get_if<rendezvous::membership::Reported>(&event)) {
    Process* process = FindProcess(said->worker.id);
    if (process == nullptr || process->incarnation != said->worker.incarnation) return;
    if (process->seen_gone || verdict_.has_value()) return;
    process->said_finished = process->said_finished || said->finished;
    process->said_failed = process->said_failed || !said->finished;
  }
}

void ControlPlane::ArmTick() {
  const absl::Time deadline = machine_->NextDeadline();
  if (deadline == armed_) return;
  armed_ = deadline;
  if (deadline == absl::InfiniteFuture()) return;
  const Micros delay =
      absl::ToInt64Microseconds(absl::Ceil(deadline - Time(), absl::Microseconds(1)));
  time_.After(delay, [this, deadline, life = daemon_life_] {
    if (!daemon_alive_ || life != daemon_life_ || armed_ != deadline) return;
    armed_ = absl::InfiniteFuture();
    Log("tick");
    Apply(rendezvous::membership::Tick{});
  });
}

void ControlPlane::Carry(const rendezvous::membership::Effect& effect) {
  if (const auto* start = std::get_if<rendezvous::membership::StartWorkerEffect>(&effect))
    return CarryStart(*start);
  if (const auto* stop = std::get_if<rendezvous::membership::StopWorkersEffect>(&effect))
    return CarryStop(*stop);
  if (const auto* keep = std::get_if<rendezvous::membership::KeepCommitsEffect>(&effect))
    return CarryKeep(*keep);
  if (const auto* hold = std::get_if<rendezvous::membership::HoldHostEffect>(&effect)) {
    ++tally_.held;
    CheckAgentOf(hold->host, hold->agent);
    // A job that ends takes no host in.
    const bool is_needed = !stop_requested_ && offered_.count(hold->host) > 0;
    if (is_needed) Fail("a host that is offered waits");
  } else if (const auto* end = std::get_if<rendezvous::membership::EndJobEffect>(&effect)) {
    CheckAgentOf(end->host, end->agent);
    if (end->summary.empty()) CheckLeaver(end->host);
    if (!wrong_.empty()) return;
    const int stream = attached_[end->host];
    agents_[streams_[stream].agent].told_to_end = true;
    const Micros grace = absl::ToInt64Microseconds(end->grace);
    SendDown(stream, [this, stream, grace] { EndAgent(streams_[stream].agent, grace); });
  } else if (const auto* world = std::get_if<rendezvous::membership::ReplyWorld>(&effect)) {
    CheckNewWorld(*world->world);
    Answer(world->call, CallKind::kJoin, [this, epoch = world->world->epoch.value()](int process) {
      Enter(process, groups_[epoch].world);
    });
  } else if (const auto* deferred = std::get_if<rendezvous::membership::ReplyDeferred>(&effect)) {
    Answer(deferred->call, CallKind::kJoin, [this](int process) {
      processes_[process].phase = Phase::kStarting;
      Later(process, dice_.Between(50 * kMilli, 2 * kSecond),
            [this, process] { Join(process, false); });
    });
  } else if (const auto* released = std::get_if<rendezvous::membership::ReplyReleased>(&effect)) {
    ++tally_.released;
    processes_[calls_[released->call.value() - 1].process].released = true;
    Answer(released->call, CallKind::kJoin, [this](int process) {
      processes_[process].phase = Phase::kEnding;
      WriteLast(process);
    });
  } else if (const auto* watch = std::get_if<rendezvous::membership::ReplyWatch>(&effect)) {
    Answer(watch->call, CallKind::kWatch,
           [this, reply = *watch](int process) { Hear(process, reply); });
  } else if (const auto* exchange = std::get_if<rendezvous::membership::ReplyExchange>(&effect)) {
    Answer(exchange->call, CallKind::kExchange,
           [this](int process) { Submit(process, Operation::kConnect); });
  } else if (const auto* status = std::get_if<rendezvous::membership::ReplyStatus>(&effect)) {
    const CallKind kind = calls_[status->call.value() - 1].kind;
    const bool confirms = kind == CallKind::kProgress || kind == CallKind::kConfirm;
    if (confirms && status->status.ok()) CheckConfirmed(status->call.value());
    Answer(status->call, kind,
           [this, kind, text = status->status](int process) { HearStatus(process, kind, text); });
  } else if (const auto* finished = std::get_if<rendezvous::membership::JobFinished>(&effect)) {
    Finish(finished->verdict);
  } else if (const auto* notice = std::get_if<rendezvous::membership::Notice>(&effect)) {
    if (notice->kind == rendezvous::membership::Notice::Kind::kEpochChanging)
      ++tally_.planned_changes;
    if (notice->text.find("do not reach each other") != std::string::npos) ++tally_.rests;
  }
}

void ControlPlane::CarryStart(const rendezvous::membership::StartWorkerEffect& effect) {
  CheckAgentOf(effect.host, effect.agent);
  // A worker that missed the command in a restart of the daemon gets it again.
  const bool first_time = asked_for_.insert(effect.worker.value()).second;
  // In a job that ends a host that leaves may have to write the newest commit, listed or not.
  const bool may_write = machines_[FindHost(effect.host)].leaving && effect.place.size == 1;
  if (offers_ && first_time && effect.slot >= offered_[effect.host] && !may_write) {
    Fail(absl::StrCat("worker ", effect.worker.value(), " starts in slot ", effect.slot, " of ",
                      effect.host, ", which is not offered"));
  }
  if (!wrong_.empty()) return;
  const int stream = attached_[effect.host];
  SendDown(stream, [this, stream, worker = effect.worker, slot = effect.slot] {
    StartProcess(streams_[stream].agent, worker, slot);
  });
}

void ControlPlane::CarryStop(const rendezvous::membership::StopWorkersEffect& effect) {
  CheckAgentOf(effect.host, effect.agent);
  if (!wrong_.empty()) return;
  hurried_ = true;
  const int stream = attached_[effect.host];
  for (const WorkerId worker : effect.workers) {
    if (Process* process = FindProcess(worker)) process->told_to_stop = true;
    if (effect.grace == absl::ZeroDuration()) ++tally_.evicted;
    SendDown(stream, [this, stream, worker, grace = absl::ToInt64Microseconds(effect.grace)] {
      for (const int process : agents_[streams_[stream].agent].processes) {
        if (processes_[process].id == worker) StopProcess(process, grace);
      }
    });
  }
}

void ControlPlane::KillDaemon(Micros away) {
  if (!daemon_alive_) return;
  Log("the daemon is killed");
  ++tally_.restarts_of_daemon;
  daemon_alive_ = false;
  ++daemon_life_;
  attached_.clear();
  for (size_t stream = 0; stream < streams_.size(); ++stream) {
    if (!streams_[stream].open_at_daemon) continue;
    streams_[stream].open_at_daemon = false;
    streams_[stream].lost = true;
    time_.After(Delay(), [this, stream] { EndAtAgent(static_cast<int>(stream)); });
  }
  for (uint64_t call = 1; call <= calls_.size(); ++call) {
    const Call& known = calls_[call - 1];
    if (known.at_daemon && !known.over) time_.After(Delay(), [this, call] { FailCall(call); });
  }
  time_.After(away, [this] { RestartDaemon(); });
}

void ControlPlane::RestartDaemon() {
  auto again =
      std::make_unique<rendezvous::membership::Membership>(spec_, absl::UnixEpoch(), throttle_);
  if (!snapshot_.empty()) {
    auto loaded = Load();
    if (!loaded.ok()) return Fail(loaded.status().ToString());
    again = *std::move(loaded);
  }
  for (const auto& [event, when] : journal_) again->Apply(event, when);
  if (again->Save().SerializeAsString() != machine_->Save().SerializeAsString() ||
      again->NextDeadline() != machine_->NextDeadline()) {
    return Fail("the replayed machine differs:\n" + ToText(machine_->Describe()) + "but\n" +
                ToText(again->Describe()));
  }
  machine_ = std::move(again);
  daemon_alive_ = true;
  armed_ = absl::InfiniteFuture();
  last_fault_ = std::max(last_fault_, time_.now());
  Log("the daemon is started again");
  Apply(rendezvous::membership::Restarted{});
  if (discovery_) Discover();
}

void ControlPlane::Finish(const rendezvous::membership::Verdict& verdict) {
  if (verdict_.has_value()) return Fail("the job finished twice");
  verdict_ = verdict;
  last_fault_ = time_.now();
  if (verdict.summary.empty()) return Fail("a verdict without a summary");
  if (verdict.success != (verdict.exit_code == 0)) return Fail("the wrong exit code");
  for (uint64_t call = 1; call <= calls_.size(); ++call) {
    const Call& known = calls_[call - 1];
    if (known.at_daemon && known.life == daemon_life_ && !known.answered) {
      return Fail(absl::StrCat("call ", call, " was never answered"));
    }
  }
  if (gentle_ && machine_->Describe().failures > 0) Fail("planned changes cost budget");
  if (!verdict.success) return;
  ++tally_.successes;
  if (!newest_world_.has_value()) return Fail("success without a world");
  for (const rendezvous::membership::WorldMember& member : newest_world_->members) {
    const Process* process = FindProcess(member.worker.id);
    if (process == nullptr || !process->said_finished) {
      return Fail(absl::StrCat("success, but rank ", member.place.rank, " never finished"));
    }
    if (CommitNumber(process->commit.id) != goal_)
      Fail(absl::StrCat("rank ", member.place.rank, " lacks commits"));
  }
}

}  // namespace hvd
