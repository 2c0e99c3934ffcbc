#include "rendezvous/membership/views/job_view.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/views/explanation.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership::views {
namespace {

Membership::Wait WaitsFor(const Parts& parts) {
  if (parts.verdict.has_value()) return Membership::Wait::kNothing;
  if (!parts.started) return Membership::Wait::kHosts;
  if (parts.elastic()) {
    if (parts.epochs.together_since == absl::InfiniteFuture()) return Membership::Wait::kNothing;
    return parts.standing.LateSurvivors().empty() ? Membership::Wait::kWorkers
                                                  : Membership::Wait::kMembers;
  }
  return parts.workers.SomeAsk() ? Membership::Wait::kInit : Membership::Wait::kNothing;
}

absl::Time WaitsUntil(const Parts& parts, Membership::Wait wait) {
  switch (wait) {
    case Membership::Wait::kHosts:
      return parts.start_deadline;
    case Membership::Wait::kWorkers:
      return parts.WaitEnds();
    case Membership::Wait::kMembers:
      return parts.epochs.together_since + parts.spec.elastic->rejoin_timeout;
    case Membership::Wait::kNothing:
    case Membership::Wait::kInit:
      break;
  }
  return absl::InfiniteFuture();
}

// What the conditions of all hosts depend on.
struct Surroundings {
  explicit Surroundings(const Parts& parts)
      : elsewhere(parts.commits),
        taken(parts.workers.TakenSlots()),
        is_coming_together(parts.standing.ComingTogether()) {}

  const CommitsElsewhere elsewhere;
  const std::set<Workers::Slot> taken;
  const bool is_coming_together;
};

std::string Condition(const Parts& parts, const Host& host, const Surroundings& around) {
  if (host.away.has_value()) return "its agent is awaited";
  if (host.held && !host.drain.has_value()) return "waits until it is offered to the job";
  if (host.drain.has_value()) {
    // See WantedChange.
    if (host.live == 0 && !host.ended && around.elsewhere.IsAlone(host)) {
      return absl::StrCat("draining: ", host.drain->reason, "; it stays to give commit ",
                          CommitNumber(host.commit), " to a host that comes");
    }
    const bool awaits = !parts.epochs.changing.has_value() && !around.is_coming_together &&
                        host.live > 0 && parts.last_time < host.drain->PatienceEnds();
    return absl::StrCat("draining: ", host.drain->reason,
                        parts.epochs.changing.has_value()
                            ? (parts.epochs.starts_anew ? "; its workers leave"
                                                        : "; its workers leave at the next commit")
                        : awaits ? "; for half of its grace others are awaited to take over"
                                 : "");
  }
  if (host.IsResting()) {
    return absl::StrCat("rests for ", text::DurationText(host.rests_until - parts.last_time),
                        ": it and host ", host.rests_from, " do not reach each other");
  }
  int resting = 0;
  for (int slot = 0; slot < host.slots.slots; ++slot) {
    if (around.taken.count({parts.hosts.IndexOf(host), slot}) == 0 &&
        parts.health.RestsUntil(host.slots.host, slot, parts.last_time) != absl::InfinitePast()) {
      ++resting;
    }
  }
  return resting == 0 ? ""
                      : absl::StrCat(phrases::Count(resting, "slot"), " resting after failures");
}

lifecycle::JobState StateNow(const Parts& parts) {
  using lifecycle::JobState;
  if (parts.verdict.has_value())
    return parts.verdict->success ? JobState::kDone : JobState::kFailed;
  if (parts.elastic() && parts.epochs.current > Epoch(0))
    return parts.standing.ComingTogether() ? JobState::kResetting : JobState::kRunning;
  return parts.epochs.current == Epoch(0) || parts.workers.SomeAsk() ? JobState::kForming
                                                                     : JobState::kRunning;
}

lifecycle::WorkerState StateOf(const Worker& worker) {
  using lifecycle::WorkerState;
  if (worker.life.gone())
    return worker.life.life() == lifecycle::WorkerLifecycle::Life::kFailed ? WorkerState::kFailed
                                                                           : WorkerState::kFinished;
  if (!worker.life.running()) return WorkerState::kLeaving;
  if (worker.join.has_value()) return WorkerState::kJoining;
  if (worker.life.member()) return WorkerState::kRunning;
  return worker.last_world == Epoch(0) ? WorkerState::kStarting : WorkerState::kFinished;
}

Membership::WorkerView ViewOf(const Parts& parts, const Worker& worker) {
  const bool has_rank = !parts.elastic() || worker.last_world > Epoch(0);
  return {worker.id, has_rank ? worker.place.rank : -1, worker.pid, StateOf(worker),
          worker.last_world == parts.epochs.current};
}

}  // namespace

Membership::View Describe(const Parts& parts) {
  Membership::View view;
  view.elastic = parts.elastic();
  view.epoch = parts.epochs.current;
  view.state = StateNow(parts);
  view.explanation = Explain(parts);
  view.min_workers = parts.spec.min_workers;
  view.max_workers = parts.spec.max_workers;
  view.size = static_cast<int>(parts.epochs.world->members.size());
  view.failures = parts.failures.counted.total();
  if (parts.elastic()) view.failures_left = parts.failures.counted.Left(parts.last_time);
  const uint64_t newest = std::max(parts.epochs.reported_commit, parts.epochs.formed_commit);
  view.commit = CommitNumber(newest);
  if (newest > 0 && newest == parts.epochs.reported_commit)
    view.committed_at = parts.epochs.committed_at;
  view.commit_rate = parts.epochs.CommitRate();
  view.some_train = parts.workers.SomeTrain();
  view.lost_steps = parts.epochs.lost_steps;
  view.lost_time = parts.epochs.lost_time;
  view.checkpoint = CommitNumber(parts.epochs.checkpoint.commit);
  uint64_t last = newest;
  for (const Host& host : parts.hosts) last = std::max(last, host.commit);
  if (last > parts.epochs.checkpoint.commit) view.unsaved_commit = CommitNumber(last);
  view.checkpoint_at = parts.epochs.checkpoint.made_at;
  view.checkpoint_place = parts.epochs.checkpoint.place;
  view.checkpoint_failure = parts.epochs.checkpoint.failure;
  view.has_begun = parts.epochs.has_begun;
  view.waits_for = WaitsFor(parts);
  view.waits_until = WaitsUntil(parts, view.waits_for);
  const Surroundings around(parts);
  for (const Host& host : parts.hosts) {
    Membership::HostView& added = view.hosts.emplace_back();
    added.host = host.slots;
    added.attached = host.agent.has_value();
    added.awaited = host.away.has_value();
    if (parts.elastic() || host.held) added.condition = Condition(parts, host, around);
    if (host.drain.has_value() && host.live > 0) added.leaves_at = host.drain->deadline;
  }
  for (const Worker& worker : parts.workers) {
    view.hosts[worker.host].workers.push_back(ViewOf(parts, worker));
  }
  return view;
}

std::vector<Membership::AttachedHost> Attached(const Parts& parts) {
  std::vector<Membership::AttachedHost> attached;
  for (const Host& host : parts.hosts) {
    if (!host.agent.has_value() && !host.away.has_value()) continue;
    Membership::AttachedHost& added = attached.emplace_back();
    added.host = host.slots;
    added.agent = host.agent.has_value() ? *host.agent : *host.away;
    for (const Worker& worker : parts.workers) {
      if (&parts.HostOf(worker) == &host && !worker.life.gone())
        added.workers.push_back(ViewOf(parts, worker));
    }
  }
  return attached;
}

}  // namespace hvd::rendezvous::membership::views
