// The control loop of an elastic job: reconciles its state with the desired one. Called after every
// event. It is level-triggered: it depends on the state and not on the event, so an omitted or
// deferred run is made up for by the next one.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/decisions/next_members.h"
#include "rendezvous/membership/decisions/planned_change.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/membership/views/explanation.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// During a planned change: the wait for the other members once the first one has asked. They ask at
// the same step, so this is short.
constexpr absl::Duration kFollowTime = absl::Seconds(5);
// The wait for a worker's exit before it is stopped again.
constexpr absl::Duration kStopPatience = absl::Seconds(5);

}  // namespace

// Reconcile takes time linear in the number of workers, and n workers cause O(n) events in a burst
// (all of them ask for the next world), so running it for each event would take O(n²). In a large
// job one run therefore serves all events until `pause` × n after the previous run, which bounds
// the share of time that it takes. NextDeadline includes next_reconcile, so a deferred run is not
// forgotten.
void Membership::State::ReconcileInTime(absl::Time now) {
  if (!elastic() || verdict.has_value()) {
    reconcile_due = false;
    return;
  }
  reconcile_due = now < next_reconcile;
  if (reconcile_due) return;
  Reconcile(now);
  const auto size = static_cast<int64_t>(workers.size());
  next_reconcile =
      size < throttle.many_workers ? absl::InfinitePast() : now + size * throttle.pause;
}

// One run of the control loop. The order of the steps matters: hanging and overdue workers leave
// first, and those that are to leave and are in no world; then a world forms from those who asked,
// and only then are changes signalled, surplus released and free slots filled. Any step may
// conclude the job, after which the rest is skipped.
void Membership::State::Reconcile(absl::Time now) {
  if (!elastic() || verdict.has_value()) return;
  started = started || hosts.AttachedSlots() >= start_workers();
  EndRests(now);
  CheckElasticDeadlines(now);
  if (!verdict.has_value()) ReleaseLeaversWithoutWorld(now);
  if (!verdict.has_value()) FormElasticWorld(now);
  if (!verdict.has_value()) SignalChange(now);
  if (!verdict.has_value()) ReleaseLeaversWhenTooFewStay(now);
  if (!verdict.has_value()) ReleaseWhenNobodyStays(now);
  if (!verdict.has_value()) ReleaseSurplus(now);
  if (!verdict.has_value()) StartWriter(now);
  if (!verdict.has_value()) EndDrainedHosts(now);
  if (!verdict.has_value()) SucceedWhenDone(now);
  if (!verdict.has_value()) EndWhenAllHaveLeft(now);
  if (!verdict.has_value()) StartWorkers(now);
  if (!verdict.has_value()) SteerCopies();
  if (!verdict.has_value()) ReportWaiting();
  ForgetDepartedHosts();
}

// The members that the others wait for, since they may still ask for the next world.
std::vector<int> Membership::State::LateRanks() const {
  return workers.RanksWhere([this](const Worker& w) {
    return (w.IsSurvivor() && !w.join.has_value()) || standing.MayComeAgain(w);
  });
}

void Membership::State::CheckElasticDeadlines(absl::Time now) {
  StopOverdueLeavers(now);
  if (epochs.together_since == absl::InfiniteFuture()) return;
  if (epochs.changing.has_value() && !epochs.broken.has_value() &&
      now >= epochs.together_since + kFollowTime) {
    const std::vector<int> late = LateRanks();
    if (!late.empty()) {
      BreakEpoch(absl::StrCat(*epochs.changing, ", but ", phrases::Ranks(late),
                              late.size() == 1 ? " does" : " do", " not come with the others"));
    }
  }
  EvictLateSurvivors(now);
  if (verdict.has_value()) return;
  // A job that ends waits for its own deadline (EndWhenAllHaveLeft).
  if (ending.has_value() || now < WaitEnds()) return;
  GiveUp(absl::StrCat(text::DurationText(spec.elastic->elastic_timeout), " of ",
                      views::Explain(*this)),
         now);
}

void Membership::State::ReportWaiting() {
  if (epochs.together_since == absl::InfiniteFuture() || epochs.told_waiting ||
      standing.IsFinishing())
    return;
  if (ending.has_value()) return;
  const auto alive = std::count_if(workers.begin(), workers.end(),
                                   [this](const Worker& w) { return standing.IsLive(w); });
  if (alive >= least_workers()) return;
  epochs.told_waiting = true;
  Note(Notice::Kind::kWaiting,
       absl::StrCat("waiting for at least ", phrases::Count(least_workers(), "worker"),
                    " (there are ", alive, ")"));
}

// A survivor that does not ask for the next world within rejoin_timeout is assumed to hang and is
// evicted; the others wait for it until then.
void Membership::State::EvictLateSurvivors(absl::Time now) {
  if (now < epochs.together_since + spec.elastic->rejoin_timeout) return;
  for (Worker& worker : workers) {
    if (!worker.IsSurvivor() || worker.join.has_value()) continue;
    Evict(&worker, absl::StrCat(Name(worker), " does not ask for the next world"),
          absl::StrCat("did not ask for the next world within ",
                       text::DurationText(spec.elastic->rejoin_timeout)),
          now);
    if (verdict.has_value()) return;
  }
}

// Removes a worker that hangs: breaks the epoch with the reason `news`, stops the worker, and
// counts its failure. The world is broken before the worker leaves it, so that the other members
// get the reason.
void Membership::State::Evict(Worker* worker, const std::string& news, const std::string& meaning,
                              absl::Time now) {
  BreakEpoch(news);
  worker->life.Make(Move::kLeave);
  epochs.failed_world = true;
  StopNow(worker, absl::ZeroDuration());
  Verdict hung;
  hung.exit_code = 1;
  hung.rank = worker->place.rank;
  hung.host = HostOf(*worker).slots.host;
  hung.exit_meaning = meaning;
  hung.summary = absl::StrCat(Name(*worker), " ", meaning);
  worker->caused_by_peer = false;
  Fail(worker, std::move(hung), now);
}

// Stops the workers whose grace (Worker::stop_at) is over.
void Membership::State::StopOverdueLeavers(absl::Time now) {
  std::map<int, std::vector<int>> overdue;  // ranks of stopped members, by host
  for (Worker& worker : workers) {
    if (worker.life.gone() || now < worker.stop_at) continue;
    worker.stop_at = now + kStopPatience;
    if (worker.life.member()) {
      overdue[worker.host].push_back(worker.place.rank);
      BreakEpoch(absl::StrCat(Name(worker), " has to leave now"));
    }
    worker.life.Make(Move::kLeave);
    StopNow(&worker, worker.life.stopped() ? absl::ZeroDuration() : spec.failure_grace);
  }
  for (const auto& [index, ranks] : overdue) {
    Host& host = hosts[index];
    if (!host.drain.has_value()) continue;  // it lost slots, or its drain was cancelled
    LeaveLate(&host, absl::StrCat("after ", text::DurationText(now - host.drain->since), " ",
                                  phrases::Ranks(ranks), ranks.size() == 1 ? " was" : " were",
                                  " stopped"));
  }
}

void Membership::State::StopNow(Worker* worker, absl::Duration with_grace) {
  const bool was_member = epochs.current > Epoch(0) && worker->last_world == epochs.current;
  const bool is_first = !worker->life.stopped();
  if (is_first) worker->stopped_in_world = was_member && !worker->join.has_value();
  EndCallsOf(worker, absl::FailedPreconditionError(absl::StrCat(Name(*worker), " was stopped")));
  worker->life.Make(Move::kStop);
  const Host& host = HostOf(*worker);
  // An agent that is away gets the command when it attaches again.
  const absl::Time told_by =
      std::max(last_time, host.away.has_value() ? host.away_until : last_time);
  if (worker->ends_by == absl::InfinitePast())
    worker->ends_by = told_by + with_grace + kStopPatience;
  if (!host.agent.has_value()) return;
  effects.push_back(StopWorkersEffect{*host.agent, host.slots.host, {worker->id}, with_grace});
}

// Starts a planned change: notifies the members, which ask for the next world at their next commit,
// so that no step is lost. Watches that arrive later get the notification at once.
void Membership::State::SignalChange(absl::Time now) {
  if (epochs.changing.has_value() || standing.ComingTogether()) return;
  const std::string reason = decisions::WantedChange(spec, standing, now);
  if (reason.empty()) return;
  epochs.changing = reason;
  for (const WatchRequested& watch : epochs.watches.TakeUnaware()) {
    effects.push_back(ReplyWatch{watch.call, EpochChange::kChanging, reason});
  }
  Note(Notice::Kind::kEpochChanging, reason);
}

absl::Time Membership::State::NextElasticDeadline() {
  if (!elastic()) return absl::InfiniteFuture();
  absl::Time next = std::min(NextFreeSlot(), decisions::NextChange(spec, standing, last_time));
  if (ending.has_value()) next = std::min(next, ending->deadline);
  // The end of a host's rest, or of its wait if it must give its commit.
  for (const Host& host : hosts) {
    const bool waits = host.drain.has_value() && host.agent.has_value() && !host.ended;
    if (waits && host.live == 0 && host.drain->deadline > last_time)
      next = std::min(next, host.drain->deadline);
    if (host.IsResting()) next = std::min(next, host.rests_until);
  }
  for (const Worker& worker : workers) {
    if (worker.life.gone()) continue;
    next = std::min(next, worker.stop_at);
    if (worker.ends_by > last_time) next = std::min(next, worker.ends_by);
  }
  if (epochs.together_since == absl::InfiniteFuture()) return next;
  if (!LateRanks().empty()) {
    next = std::min(next, epochs.together_since + spec.elastic->rejoin_timeout);
    if (epochs.changing.has_value() && !epochs.broken.has_value())
      next = std::min(next, epochs.together_since + kFollowTime);
  }
  if (epochs.quorum_since != absl::InfiniteFuture()) {
    for (const absl::Time end :
         {epochs.quorum_since + decisions::NextMembers::kFormPatience,
          epochs.quorum_since + CommitPlaces::kCopyPatience, standing.OldWorldEnds()}) {
      if (end > last_time) next = std::min(next, end);
    }
  }
  if (epochs.idle_until > last_time) next = std::min(next, epochs.idle_until);
  return std::min(next, WaitEnds());
}

}  // namespace hvd::rendezvous::membership
