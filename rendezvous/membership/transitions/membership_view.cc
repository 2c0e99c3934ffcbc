// Read-only views of the state: explanations, the contents of GetStatus, and the check of
// invariants.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/decisions/free_slots.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

std::string RanksRun(size_t count) {
  return absl::StrCat(count, count == 1 ? " rank runs" : " ranks run");
}

std::string AreText(int count) {
  if (count == 0) return "none is";
  return absl::StrCat(count, count == 1 ? " is" : " are");
}

}  // namespace

std::string Membership::State::Check() const {
  for (const std::string& wrong : {hosts.Check(), workers.Check(hosts), epochs.Check(workers)}) {
    if (!wrong.empty()) return wrong;
  }
  // Watches may be parked while the workers use their grace; see StopRequested.
  const bool some_wait = workers.SomeAsk() || (finished && !epochs.watches.empty());
  if (verdict.has_value() && some_wait) return "a call is parked after the verdict";
  if (finished && !verdict.has_value()) return "the job has ended without a verdict";
  if (settle_deadline != absl::InfiniteFuture() && !root_cause.HasEnd()) {
    return "a cause is awaited, and nothing has failed";
  }
  if (!elastic() && workers.SomeFail()) return "a worker of a static job said that it fails";
  if (elastic() && !workers.empty() && workers.last_id < std::prev(workers.end())->id.value()) {
    return "the newest worker is not the last";
  }
  return "";
}

std::string Membership::State::Explain() const {
  const std::vector<int> alive = workers.RanksWhere([](const Worker& w) { return !w.life.gone(); });
  if (finished) return verdict->summary;
  if (verdict.has_value()) {
    return absl::StrCat(verdict->summary, "; waiting for ", phrases::Ranks(alive), " to exit");
  }
  if (!started) return absl::StrCat("waiting for ", MissingText());
  if (ending.has_value()) {
    const bool all_asked = standing.ComingTogether() && standing.LateSurvivors().empty();
    return absl::StrCat("the job ends (", ending->reason, "): ",
                        all_asked ? absl::StrCat("waiting for ", phrases::Ranks(alive), " to exit")
                                  : ExplainElastic());
  }
  if (elastic()) return ExplainElastic();
  if (root_cause.HasEnd()) {
    return absl::StrCat(root_cause.Build().summary, "; waiting for its cause to show");
  }
  const std::vector<int> to_ask =
      workers.RanksWhere([](const Worker& w) { return !w.life.gone() && !w.join.has_value(); });
  const size_t asked = alive.size() - to_ask.size();
  if (asked > 0) {
    return absl::StrCat("waiting for ", phrases::Ranks(to_ask), " to call hvd.init() (", asked,
                        " of ", workers.size(), ")");
  }
  const size_t exited = workers.size() - alive.size();
  if (epochs.current == Epoch(0)) {
    return absl::StrCat(RanksRun(alive.size()), ", none has called hvd.init()",
                        exited == 0 ? "" : absl::StrCat("; ", exited, " exited with code 0"));
  }
  if (epochs.broken.has_value())
    return absl::StrCat("world ", epochs.current.value(), " is broken: ", *epochs.broken);
  const size_t inside = workers.RanksWhere([](const Worker& w) { return w.life.member(); }).size();
  const size_t outside = workers.size() - inside;
  if (inside == 0) {
    return absl::StrCat("all ranks finished world ", epochs.current.value(), "; waiting for ",
                        phrases::Ranks(alive), " to exit");
  }
  return absl::StrCat(RanksRun(inside), " in world ", epochs.current.value(),
                      outside == 0 ? "" : absl::StrCat("; ", outside, " finished"));
}

// "waiting for commit 51, which only host b has (host a takes a copy)"
std::string Membership::State::MissingCommitText(const Host& holder) const {
  std::string how = "none of its workers is ready";
  for (const Host& host : hosts) {
    if (host.copies_from != holder.commit_address || host.copies_from.empty()) continue;
    how = absl::StrCat("host ", host.slots.host, " takes a copy");
  }
  return absl::StrCat("waiting for commit ", CommitNumber(holder.commit), ", which only host ",
                      holder.slots.host, " has (", how, ")");
}

std::string Membership::State::ExplainElastic() const {
  int asked = 0, inside = 0, starting = 0, finished_ones = 0;
  for (const Worker& worker : workers) {
    if (worker.life.gone() && !worker.life.finished()) continue;
    if (worker.IsSurvivor()) ++inside;
    if (worker.join.has_value()) {
      asked += standing.IsLeaving(worker) ? 0 : 1;
    } else if (standing.IsLive(worker) && !worker.IsSurvivor()) {
      ++starting;
    }
    if (worker.life.finished() && worker.last_world == epochs.current) ++finished_ones;
  }
  if (standing.ComingTogether()) {
    const std::vector<int> late = standing.LateSurvivors();
    if (late.empty() && standing.OldWorldEnds() > last_time) {
      return absl::StrCat("waiting until the members of world ", epochs.current.value(),
                          ", which was lost as a whole, have surely ended");
    }
    if (late.empty() && epochs.idle_until > last_time) return epochs.IdleText(epochs.IdleInARow());
    if (late.empty() && epochs.quorum_since != absl::InfiniteFuture()) {
      const Host* const holder = commits.HolderOfNewest();
      if (holder != nullptr && holder->commit > commits.RestorableByAsking())
        return MissingCommitText(*holder);
    }
    if (late.empty()) return ExplainNeed(asked, starting);
    return absl::StrCat("waiting for ", phrases::Ranks(late), " to ask for the next world",
                        epochs.broken.has_value() ? absl::StrCat(" (", *epochs.broken, ")") : "");
  }
  std::string text = absl::StrCat(RanksRun(inside), " in world ", epochs.current.value());
  if (finished_ones > 0) absl::StrAppend(&text, "; ", finished_ones, " finished");
  if (epochs.changing.has_value())
    absl::StrAppend(&text, "; at the next commit: ", *epochs.changing);
  if (starting > 0) absl::StrAppend(&text, "; ", phrases::Count(starting, "worker"), " starting");
  if (asked > 0) absl::StrAppend(&text, "; ", asked, " ready to join");
  return text;
}

std::string Membership::State::ExplainNeed(int asked, int starting) const {
  const int needed = least_workers();
  std::string text = absl::StrCat("waiting for ", phrases::Count(needed, "worker"), ": ",
                                  AreText(asked), " ready, ", AreText(starting), " starting");
  if (asked + starting < needed) {
    absl::StrAppend(&text, " (", UsableSlots(), RestingText(), ")");
  }
  return text;
}

// "; slot 0 of host b rests for 42s after 3 failures in a row"
std::string Membership::State::RestingText() const {
  constexpr int kMost = 4;  // slots that are named
  std::string text;
  int resting = 0;
  for (const decisions::FreeSlot& free : decisions::FreeSlots(hosts, workers, health, last_time)) {
    if (!free.rests() || ++resting > kMost) continue;
    const std::string& host = hosts[free.host].slots.host;
    absl::StrAppend(&text, "; slot ", free.slot, " of host ", host, " rests for ",
                    text::DurationText(free.rests_until - last_time), " after ",
                    phrases::Count(health.Failures(host, free.slot), "failure"), " in a row");
  }
  if (resting > kMost) absl::StrAppend(&text, "; ", resting - kMost, " more rest");
  if (resting > 0 && epochs.next_try > last_time) {
    absl::StrAppend(&text, "; the next one is tried in ",
                    text::DurationText(epochs.next_try - last_time));
  }
  return text;
}

// "2 slots on hosts a, b"
std::string Membership::State::UsableSlots() const {
  int slots = 0;
  std::vector<std::string> names;
  for (const Host& host : hosts) {
    if (!host.TakesPart() || host.held) continue;
    slots += host.slots.slots;
    names.push_back(host.slots.host);
  }
  return names.empty() ? "no host is there"
                       : absl::StrCat(phrases::Count(slots, "slot"), " on ", phrases::Hosts(names));
}

Membership::Wait Membership::State::WaitsFor() const {
  if (verdict.has_value()) return Wait::kNothing;
  if (!started) return Wait::kHosts;
  if (elastic()) {
    if (epochs.together_since == absl::InfiniteFuture()) return Wait::kNothing;
    return standing.LateSurvivors().empty() ? Wait::kWorkers : Wait::kMembers;
  }
  return workers.SomeAsk() ? Wait::kInit : Wait::kNothing;
}

absl::Time Membership::State::WaitsUntil(Wait wait) const {
  switch (wait) {
    case Wait::kHosts:
      return start_deadline;
    case Wait::kWorkers:
      return epochs.together_since + spec.elastic->elastic_timeout;
    case Wait::kMembers:
      return epochs.together_since + spec.elastic->rejoin_timeout;
    case Wait::kNothing:
    case Wait::kInit:
      break;
  }
  return absl::InfiniteFuture();
}

std::string Membership::State::Condition(const Host& host,
                                         const std::set<std::pair<int, int>>& taken) const {
  if (host.away.has_value()) return "its agent is awaited";
  if (host.held && !host.drain.has_value()) return "waits until it is offered to the job";
  if (host.drain.has_value()) {
    // See WantedChange.
    if (host.live == 0 && !host.ended && commits.AloneHasCommit(host)) {
      return absl::StrCat("draining: ", host.drain->reason, "; it stays to give commit ",
                          CommitNumber(host.commit), " to a host that comes");
    }
    const bool awaits = !epochs.changing.has_value() && !standing.ComingTogether() &&
                        host.live > 0 && last_time < host.drain->PatienceEnds();
    return absl::StrCat("draining: ", host.drain->reason,
                        epochs.changing.has_value() ? "; its workers leave at the next commit"
                        : awaits ? "; for half of its grace others are awaited to take over"
                                 : "");
  }
  if (host.IsResting()) {
    return absl::StrCat("rests for ", text::DurationText(host.rests_until - last_time),
                        ": it and host ", host.rests_from, " do not reach each other");
  }
  int resting = 0;
  for (int slot = 0; slot < host.slots.slots; ++slot) {
    if (taken.count({hosts.IndexOf(host), slot}) == 0 &&
        health.RestsUntil(host.slots.host, slot, last_time) != absl::InfinitePast()) {
      ++resting;
    }
  }
  return resting == 0 ? ""
                      : absl::StrCat(phrases::Count(resting, "slot"), " resting after failures");
}

Membership::View Membership::State::Describe() const {
  View view;
  view.elastic = elastic();
  view.epoch = epochs.current;
  view.state = StateNow();
  view.explanation = Explain();
  view.min_workers = spec.min_workers;
  view.max_workers = spec.max_workers;
  view.size = static_cast<int>(epochs.world->members.size());
  view.failures = counted_failures.total();
  if (elastic()) view.failures_left = counted_failures.Left(last_time);
  const uint64_t newest = std::max(epochs.reported_commit, epochs.formed_commit);
  view.commit = CommitNumber(newest);
  if (newest > 0 && newest == epochs.reported_commit) view.committed_at = epochs.committed_at;
  view.commit_rate = epochs.CommitRate();
  view.some_train = workers.SomeTrain();
  view.lost_steps = epochs.lost_steps;
  view.lost_time = epochs.lost_time;
  view.checkpoint = CommitNumber(epochs.checkpoint.commit);
  uint64_t last = newest;
  for (const Host& host : hosts) last = std::max(last, host.commit);
  if (last > epochs.checkpoint.commit) view.unsaved_commit = CommitNumber(last);
  view.checkpoint_at = epochs.checkpoint.made_at;
  view.checkpoint_place = epochs.checkpoint.place;
  view.checkpoint_failure = epochs.checkpoint.failure;
  view.has_begun = epochs.has_begun;
  view.waits_for = WaitsFor();
  view.waits_until = WaitsUntil(view.waits_for);
  const std::set<std::pair<int, int>> taken = workers.TakenSlots();
  for (const Host& host : hosts) {
    HostView& added = view.hosts.emplace_back();
    added.host = host.slots;
    added.attached = host.agent.has_value();
    added.awaited = host.away.has_value();
    if (elastic() || host.held) added.condition = Condition(host, taken);
    if (host.drain.has_value() && host.live > 0) added.leaves_at = host.drain->deadline;
  }
  for (const Worker& worker : workers) {
    view.hosts[worker.host].workers.push_back(ViewOf(worker));
  }
  return view;
}

Membership::WorkerView Membership::State::ViewOf(const Worker& worker) const {
  const bool has_rank = !elastic() || worker.last_world > Epoch(0);
  return {worker.id, has_rank ? worker.place.rank : -1, worker.pid, StateOf(worker)};
}

std::vector<Membership::AttachedHost> Membership::State::Attached() const {
  std::vector<AttachedHost> attached;
  for (const Host& host : hosts) {
    if (!host.agent.has_value() && !host.away.has_value()) continue;
    AttachedHost& added = attached.emplace_back();
    added.host = host.slots;
    added.agent = host.agent.has_value() ? *host.agent : *host.away;
    for (const Worker& worker : workers) {
      if (&HostOf(worker) == &host && !worker.life.gone()) added.workers.push_back(ViewOf(worker));
    }
  }
  return attached;
}

lifecycle::JobState Membership::State::StateNow() const {
  using lifecycle::JobState;
  if (verdict.has_value()) return verdict->success ? JobState::kDone : JobState::kFailed;
  if (elastic() && epochs.current > Epoch(0))
    return standing.ComingTogether() ? JobState::kResetting : JobState::kRunning;
  return epochs.current == Epoch(0) || workers.SomeAsk() ? JobState::kForming : JobState::kRunning;
}

lifecycle::WorkerState Membership::State::StateOf(const Worker& worker) const {
  using lifecycle::WorkerState;
  if (worker.life.gone())
    return worker.life.life() == Life::kFailed ? WorkerState::kFailed : WorkerState::kFinished;
  if (!worker.life.running()) return WorkerState::kLeaving;
  if (worker.join.has_value()) return WorkerState::kJoining;
  if (worker.life.member()) return WorkerState::kRunning;
  return worker.last_world == Epoch(0) ? WorkerState::kStarting : WorkerState::kFinished;
}

}  // namespace hvd::rendezvous::membership
