#include "tests/simulation/random_schedule.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/trace.h"

namespace hvd {
namespace {

constexpr int kSteps = 120;

}  // namespace

RandomSchedule::RandomSchedule(uint32_t seed) : rng_(seed) {
  int slots = 0;
  const int hosts = 1 + Roll(3);
  for (int host = 0; host < hosts; ++host) {
    const std::string name(1, static_cast<char>('a' + host));
    spec_.expected_hosts.push_back({name, 1 + Roll(3), MachineOf(name)});
    slots += spec_.expected_hosts.back().slots;
  }
  spec_.max_workers = spec_.min_workers = Chance(80) ? slots : 1 + Roll(slots);
  if (Chance(20)) spec_.expected_hosts.clear();
  machine_.emplace(spec_, now_);
  // In some schedules all goes well at first, since else few would get far.
  if (Chance(20)) return;
  for (const rendezvous::membership::HostSlots& host : spec_.expected_hosts) {
    attached_[host.host] = Incarnation(++next_incarnation_);
    Apply(rendezvous::membership::HostJoined{host, attached_[host.host]});
  }
}

void RandomSchedule::Run() {
  for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) Step();
  WindUp();
  CheckReplay();
}

void RandomSchedule::Step() {
  const int dice = Roll(100);
  if (dice < 3) return HostStep();
  if (dice < 8) return TimeStep();
  if (dice < 9 && Chance(30)) {
    return Apply(rendezvous::membership::StopRequested{"stop", Roll(3), absl::Seconds(Roll(4)),
                                                       Chance(30), Chance(30)});
  }
  if (dice < 14 && !calls_.empty()) {
    const rendezvous::membership::CallId call(1 + Roll(static_cast<int>(calls_.size()) + 1));
    return Apply(rendezvous::membership::CallCancelled{call});
  }
  if (dice < 15 && Chance(50)) return BreakdownStep();
  if (dice < 16) return ExitStep(1 + Roll(spec_.max_workers + 1), Roll(3), Chance(20) ? 9 : 0);
  if (dice < 55) return OrderlyStep();
  CallStep();
}

void RandomSchedule::HostStep() {
  const std::string host(1, static_cast<char>('a' + Roll(4)));
  const bool is_attached = attached_.count(host) > 0;
  if (!is_attached || Chance(20)) {
    const Incarnation agent(++next_incarnation_);
    // The service rejects an agent whose name is taken; here it only must have no effect.
    if (!is_attached) attached_[host] = agent;
    return Apply(rendezvous::membership::HostJoined{{host, 1 + Roll(3), MachineOf(host)}, agent});
  }
  const Incarnation lost = Chance(20) ? Incarnation(7) : attached_[host];
  if (lost == attached_[host]) {
    for (auto& [worker, process] : processes_) {
      if (process.host == host) process.gone = true;
    }
    attached_.erase(host);
  }
  Apply(rendezvous::membership::HostLost{host, lost, "cut"});
}

// The next action of a well-behaved worker.
void RandomSchedule::OrderlyStep() {
  if (processes_.empty()) return HostStep();
  const uint64_t worker = 1 + Roll(static_cast<int>(processes_.size()));
  const Process& process = processes_[worker];
  if (process.gone) return;
  if (process.incarnation == 0 || (process.finished && Chance(60))) {
    return Apply(rendezvous::membership::JoinRequested{NewCall(CallKind::kJoin), KeyOf(worker),
                                                       Epoch(process.epoch), "10.0.0.1", 4000});
  }
  if (process.finished) return ExitStep(worker, 0, 0);
  ReportStep(worker, KeyOf(worker));
}

// Some workers lose a peer, report it and exit; the failure that caused it may come in between.
void RandomSchedule::BreakdownStep() {
  for (int victims = 1 + Roll(4); victims > 0 && !processes_.empty(); --victims) {
    const uint64_t worker = 1 + Roll(static_cast<int>(processes_.size()));
    if (processes_[worker].gone) continue;
    Apply(rendezvous::membership::Reported{NewCall(CallKind::kReport), KeyOf(worker),
                                           Epoch(processes_[worker].epoch), false, "lost a peer",
                                           Chance(80)});
    if (Chance(70)) ExitStep(worker, 1, 0);
    if (Chance(20)) TimeStep();
  }
}

void RandomSchedule::CallStep() {
  const uint64_t worker = Roll(spec_.max_workers + 2);  // 0 and the last do not exist
  const bool exists = processes_.count(worker) > 0;
  if (exists && Chance(2)) processes_[worker].incarnation = ++next_incarnation_;
  rendezvous::membership::WorkerKey key =
      exists ? KeyOf(worker) : rendezvous::membership::WorkerKey{WorkerId(worker), Incarnation(5)};
  if (Chance(5)) key.incarnation = Incarnation(1 + Roll(static_cast<int>(next_incarnation_)));
  const uint64_t epoch = exists && Chance(80) ? processes_[worker].epoch : Roll(4);
  switch (Roll(5)) {
    case 0:
      return Apply(rendezvous::membership::JoinRequested{NewCall(CallKind::kJoin), key,
                                                         Epoch(Roll(3)), "10.0.0.1", 4000});
    case 1:
      return Apply(
          rendezvous::membership::WatchRequested{NewCall(CallKind::kWatch), key, Epoch(epoch)});
    case 2:
    case 3:
      return Apply(rendezvous::membership::ExchangeRequested{
          NewCall(CallKind::kExchange), key, Epoch(epoch),
          Chance(90) ? std::string(1, 'k' + Roll(3)) : "", absl::StrCat("from-", worker)});
    default:
      return Chance(20) ? ReportStep(worker, key) : OrderlyStep();
  }
}

void RandomSchedule::ReportStep(uint64_t worker, rendezvous::membership::WorkerKey key) {
  const auto process = processes_.find(worker);
  const uint64_t epoch = process == processes_.end() ? 1 : process->second.epoch;
  const bool finished = Chance(85);
  Apply(rendezvous::membership::Reported{NewCall(CallKind::kReport), key, Epoch(epoch), finished,
                                         finished ? "" : "ValueError", Chance(50)});
  if (process == processes_.end() || !finished) return;
  if (process->second.member == key.incarnation.value()) process->second.finished = true;
}

void RandomSchedule::ExitStep(uint64_t worker, int code, int signal) {
  const auto process = processes_.find(worker);
  rendezvous::membership::WorkerExited exited;
  exited.worker = WorkerId(worker);
  exited.exit_code = code;
  exited.signal = signal;
  if (process != processes_.end() && !process->second.gone) {
    process->second.gone = true;
    process->second.exited_with_zero = code == 0 && signal == 0;
  }
  Apply(exited);
}

void RandomSchedule::TimeStep() {
  const absl::Time deadline = machine_->NextDeadline();
  if (deadline == absl::InfiniteFuture() || Chance(60)) {
    // Before the deadline nothing must happen.
    const absl::Duration step = absl::Milliseconds(1 + Roll(400));
    if (deadline - now_ <= step) return;
    now_ += step;
    const std::string before = ToText(machine_->Describe());
    const size_t effects = trace_.size();
    Apply(rendezvous::membership::Tick{});
    EXPECT_EQ(trace_.size(), effects) << "a tick before the deadline had effects";
    EXPECT_EQ(ToText(machine_->Describe()), before);
    EXPECT_EQ(machine_->NextDeadline(), deadline);
    return;
  }
  now_ = deadline;
  Apply(rendezvous::membership::Tick{});
  EXPECT_GT(machine_->NextDeadline(), deadline) << "the deadline does not move";
}

// Whatever has happened, once all workers are gone at most the start or the settling can be
// pending.
void RandomSchedule::WindUp() {
  std::vector<uint64_t> workers;
  for (const auto& [worker, process] : processes_) workers.push_back(worker);
  for (const uint64_t worker : workers) ExitStep(worker, 0, 0);
  for (int ticks = 0; ticks < 2 && !verdict_.has_value(); ++ticks) {
    const absl::Time deadline = machine_->NextDeadline();
    ASSERT_NE(deadline, absl::InfiniteFuture()) << machine_->Explain();
    now_ = std::max(now_, deadline);
    Apply(rendezvous::membership::Tick{});
  }
  ASSERT_TRUE(verdict_.has_value()) << "the job does not end: " << machine_->Explain();
  EXPECT_EQ(machine_->NextDeadline(), absl::InfiniteFuture());
  for (size_t call = 0; call < calls_.size(); ++call) {
    EXPECT_TRUE(calls_[call].answered) << "call " << call + 1 << " was never answered";
  }
}

rendezvous::membership::CallId RandomSchedule::NewCall(CallKind kind) {
  calls_.push_back(Call{kind});
  return rendezvous::membership::CallId(calls_.size());
}

rendezvous::membership::WorkerKey RandomSchedule::KeyOf(uint64_t worker) {
  Process& process = processes_[worker];
  if (process.incarnation == 0) process.incarnation = ++next_incarnation_;
  return {WorkerId(worker), Incarnation(process.incarnation)};
}

void RandomSchedule::Apply(const rendezvous::membership::Event& event) {
  events_.emplace_back(event, now_);
  for (const rendezvous::membership::Effect& effect : machine_->Apply(event, now_)) {
    trace_.push_back(ToText(effect));
    CheckEffect(effect);
  }
  EXPECT_EQ(machine_->Check(), "");
  const std::string explanation = machine_->Explain();
  EXPECT_FALSE(explanation.empty());
  EXPECT_EQ(explanation.find('\n'), std::string::npos);
}

void RandomSchedule::CheckEffect(const rendezvous::membership::Effect& effect) {
  if (const std::optional<rendezvous::membership::CallId> id = AnsweredCall(effect);
      id.has_value()) {
    ASSERT_LE(id->value(), calls_.size());
    Call& call = calls_[id->value() - 1];
    EXPECT_FALSE(call.answered) << "call " << *id << " is answered twice";
    call.answered = true;
    const auto is = [&effect](auto reply) {
      return std::holds_alternative<decltype(reply)>(effect);
    };
    EXPECT_TRUE(is(rendezvous::membership::ReplyStatus()) ||
                (call.kind == CallKind::kJoin && is(rendezvous::membership::ReplyWorld())) ||
                (call.kind == CallKind::kWatch && is(rendezvous::membership::ReplyWatch())) ||
                (call.kind == CallKind::kExchange && is(rendezvous::membership::ReplyExchange())));
  }
  if (const auto* start = std::get_if<rendezvous::membership::StartWorkerEffect>(&effect)) {
    CheckAgent(start->host, start->agent);
    EXPECT_EQ(processes_.count(start->worker.value()), 0u) << "started twice";
    processes_[start->worker.value()].host = start->host;
  } else if (const auto* stop = std::get_if<rendezvous::membership::StopWorkersEffect>(&effect)) {
    CheckAgent(stop->host, stop->agent);
    for (const WorkerId worker : stop->workers) {
      EXPECT_FALSE(processes_[worker.value()].gone) << "worker " << worker << " has gone";
    }
  } else if (const auto* reply = std::get_if<rendezvous::membership::ReplyWorld>(&effect)) {
    CheckWorld(*reply->world);
  } else if (const auto* finished = std::get_if<rendezvous::membership::JobFinished>(&effect)) {
    CheckVerdict(finished->verdict);
  }
}

void RandomSchedule::CheckAgent(const std::string& host, Incarnation agent) {
  ASSERT_EQ(attached_.count(host), 1u) << "host " << host << " is not attached";
  EXPECT_EQ(attached_[host], agent) << "host " << host << " has another agent";
}

void RandomSchedule::CheckWorld(const rendezvous::membership::World& world) {
  const std::string text = ToText(rendezvous::membership::ReplyWorld{
      rendezvous::membership::CallId(0),
      std::make_shared<const rendezvous::membership::World>(world)});
  const auto [known, is_new] = world_texts_.emplace(world.epoch.value(), text);
  EXPECT_EQ(known->second, text) << "two worlds in one epoch";
  EXPECT_EQ(world_texts_.rbegin()->first, world.epoch.value()) << "an old world";
  if (!is_new) return;
  ASSERT_EQ(world.members.size(), static_cast<size_t>(spec_.max_workers));
  std::map<std::string, int> local;  // next local rank, by machine
  for (size_t rank = 0; rank < world.members.size(); ++rank) {
    const rendezvous::membership::WorldMember& member = world.members[rank];
    EXPECT_EQ(member.place.rank, static_cast<int>(rank));
    EXPECT_EQ(member.place.local_rank, local[MachineOf(member.host)]++);
    Process& process = processes_[member.worker.id.value()];
    EXPECT_FALSE(process.gone) << "rank " << rank << " is dead";
    EXPECT_EQ(process.host, member.host);
    process.finished = false;
    process.epoch = world.epoch.value();
    process.member = member.worker.incarnation.value();
  }
  for (const rendezvous::membership::WorldMember& member : world.members) {
    EXPECT_EQ(member.place.local_size, local[MachineOf(member.host)]);
  }
}

std::string RandomSchedule::MachineOf(const std::string& host) const {
  return shared_ && host != "b" ? "m" : host;
}

void RandomSchedule::CheckVerdict(const rendezvous::membership::Verdict& verdict) {
  EXPECT_FALSE(verdict_.has_value()) << "the job finished twice";
  verdict_ = verdict;
  EXPECT_FALSE(verdict.summary.empty());
  EXPECT_EQ(machine_->Explain(), verdict.summary);
  if (!verdict.success) return;
  EXPECT_EQ(verdict.exit_code, 0);
  for (const auto& [worker, process] : processes_) {
    EXPECT_TRUE(process.gone && process.exited_with_zero) << "worker " << worker;
    EXPECT_TRUE(process.finished) << "worker " << worker << " never said that it finished";
  }
}

void RandomSchedule::CheckReplay() {
  rendezvous::membership::Membership again(spec_, absl::UnixEpoch());
  std::vector<std::string> trace;
  for (const auto& [event, now] : events_) {
    for (const rendezvous::membership::Effect& effect : again.Apply(event, now))
      trace.push_back(ToText(effect));
  }
  EXPECT_EQ(trace, trace_) << "the same events had other effects";
}

}  // namespace hvd
