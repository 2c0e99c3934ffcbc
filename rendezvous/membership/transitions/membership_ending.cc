// The end of a job: evaluates the exits of workers, determines the verdict, and stops everything.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/callers.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/membership/views/explanation.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// The wait for the report of a worker's exit after its grace.
constexpr absl::Duration kPatience = absl::Seconds(5);

Verdict Stopped(const std::string& reason, int exit_code) {
  Verdict stopped;
  stopped.exit_code = exit_code;
  stopped.summary = absl::StrCat("stopped: ", phrases::OneLine(reason));
  return stopped;
}

}  // namespace

void Membership::State::On(const WorkerExited& told, absl::Time now) {
  Worker* worker = workers.Find(told.worker);
  if (worker == nullptr || worker->life.gone()) return;
  WorkerExited event = told;
  const bool unknown = !event.unknown_end.empty() && event.signal == 0;
  if (unknown && !worker->life.finished()) event.exit_code = 1;
  worker->stderr_tail = event.stderr_tail;
  const std::string news = absl::StrCat(Name(*worker), " has exited: ", ExitMeaning(event));
  EndCallsOf(worker, absl::FailedPreconditionError(news));
  if (elastic() && !verdict.has_value()) return EndElasticWorker(worker, event, now);
  const bool well = ExitedWithZero(event) && !worker->life.member();
  workers.End(worker, well ? Move::kEndWell : Move::kEndBadly, &hosts);
  if (verdict.has_value()) {
    AnswerWatches();
    CompleteVerdict(*worker, event);
    FinishHost(&hosts[worker->host]);
    return FinishIfAllGone();
  }
  const int rank = worker->place.rank;
  if (!well) {
    root_cause.Exited(rank, HostOf(*worker).slots.host, event);
  } else {
    root_cause.Retract(rank);
    FailIfNoWorldCanForm(now);
  }
  if (!verdict.has_value()) DecideOutcome(news, now);
}

// Adds the exit of the worker at fault to a verdict that was concluded before it. The exit status
// is used only if the worker was not killed by a signal: that one may have come from the daemon's
// own stop command. Its last lines on stderr are used in any case.
void Membership::State::CompleteVerdict(const Worker& worker, const WorkerExited& exited) {
  if (elastic() || verdict->success || verdict->rank != worker.place.rank) return;
  if (worker.life.finished()) return;
  if (exited.signal != 0) {
    verdict->stderr_tail = exited.stderr_tail;
    return;
  }
  root_cause.Exited(worker.place.rank, HostOf(worker).slots.host, exited);
  verdict = root_cause.Build();
}

// Answers this worker's parked JoinWorld and WatchEpoch calls. Its exchanges end when the epoch
// breaks or a member leaves it.
void Membership::State::EndCallsOf(Worker* worker, const absl::Status& status) {
  if (worker->join.has_value()) Answer(worker->join->call, status);
  worker->join.reset();
  for (const WatchRequested& watch : epochs.watches.TakeOf(worker->id)) Answer(watch.call, status);
}

// Called after the end of a process in a static job; `news` describes it. Concludes the job if the
// verdict is known: all workers exited, or the root cause is certain. Otherwise a worker failed as
// a consequence of another failure that was not reported yet: breaks the epoch and waits
// settle_time for that failure, or kDyingTime if a worker is known to be dying.
void Membership::State::DecideOutcome(const std::string& news, absl::Time now) {
  if (!root_cause.HasEnd()) {
    if (!workers.AllGone()) return;
    Verdict success;
    success.success = true;
    success.summary =
        epochs.current > Epoch(0)
            ? absl::StrCat(phrases::Count(static_cast<int>(workers.size()), "rank"), " finished")
            : absl::StrCat(phrases::Count(static_cast<int>(workers.size()), "worker"),
                           " exited with code 0 without hvd.init()");
    return Conclude(std::move(success), spec.failure_grace, now);
  }
  if (root_cause.IsCertain() || workers.AllGone()) {
    return Conclude(root_cause.Build(), spec.failure_grace, now);
  }
  settle_deadline = std::min(settle_deadline, std::max(dying_deadline, now + spec.settle_time));
  BreakEpoch(news);
}

// Fails a static job if a worker has exited with 0 while others wait for a world: a static job's
// world needs every worker, so they would wait without end.
void Membership::State::FailIfNoWorldCanForm(absl::Time now) {
  if (root_cause.HasEnd()) return;
  const auto gone =
      std::find_if(workers.begin(), workers.end(), [](const Worker& w) { return w.life.gone(); });
  const std::vector<int> waiting =
      workers.RanksWhere([](const Worker& w) { return w.join.has_value(); });
  if (gone == workers.end() || waiting.empty()) return;
  Verdict failure;
  failure.exit_code = 1;
  failure.rank = gone->place.rank;
  failure.host = HostOf(*gone).slots.host;
  failure.exit_meaning = "exit code 0";
  failure.stderr_tail = gone->stderr_tail;
  failure.summary =
      epochs.current > Epoch(0)
          ? absl::StrCat(Name(*gone), " has exited with code 0, but ", phrases::Ranks(waiting),
                         waiting.size() == 1 ? " has" : " have",
                         " called hvd.init() again and would wait for it forever")
          : absl::StrCat(Name(*gone), " exited with code 0 before it called hvd.init(), while ",
                         phrases::Ranks(waiting), waiting.size() == 1 ? " waits" : " wait",
                         " for it");
  Conclude(std::move(failure), spec.failure_grace, now);
}

void Membership::State::On(const StopRequested& event, absl::Time now) {
  if (finished) return;
  if (!verdict.has_value()) {
    if (event.at_commit && elastic() && !workers.AllGone()) return EndAtCommit(event, now);
    const bool keeps_world = event.keeps_world && event.grace > absl::ZeroDuration();
    NoteEnding(event.reason, workers.AllGone() ? ""
                             : event.grace > absl::ZeroDuration()
                                 ? absl::StrCat("; its workers get SIGTERM, and SIGKILL after ",
                                                text::DurationText(event.grace))
                                 : "; its workers are killed");
    return Conclude(Stopped(event.reason, event.exit_code), event.grace, now, keeps_world);
  }
  if (event.at_commit || event.grace >= grace) return;
  grace = event.grace;
  finish_deadline = std::min(finish_deadline, now + grace + kPatience);
  StopLiveWorkers();
}

void Membership::State::NoteEnding(const std::string& reason, const std::string& how) {
  Note(Notice::Kind::kJobEnding, absl::StrCat("the job ends: ", phrases::OneLine(reason), how));
}

// Drains every host. Reconcile ends the job when no worker is left.
void Membership::State::EndAtCommit(const StopRequested& event, absl::Time now) {
  if (ending.has_value()) return;
  const absl::Duration time =
      event.grace > absl::ZeroDuration() ? event.grace : spec.elastic->drain_grace;
  ending = Ending{phrases::OneLine(event.reason), event.exit_code, now + time + kPatience};
  NoteEnding(
      ending->reason,
      absl::StrCat(workers.SomeTrain() ? "; all workers leave at their next commit, within "
                                       : "; no rank is in training, and all processes end within ",
                   text::DurationText(time)));
  for (Host& host : hosts) {
    if (!host.IsThere() || host.held) continue;
    StartDrain(&host, time, "the job is to end", false, now);
    host.drain->ends_job = true;
  }
  for (Worker& worker : workers) {
    if (!worker.life.gone()) worker.stop_at = std::min(worker.stop_at, now + time);
  }
  StopStarting(UnwrittenCommit(), now);
}

// At the end of the job, stops the workers that are starting: they have nothing to commit, and no
// world to come to. Those that wait for one are released. Those that can restore `kept` go on; 0:
// none do.
void Membership::State::StopStarting(uint64_t kept, absl::Time now) {
  for (Worker& worker : workers) {
    const bool is_starting = worker.life.running() && !worker.life.member() &&
                             !worker.life.finished() && !worker.join.has_value();
    if (!is_starting || (kept > 0 && commits.Restorable(worker) >= kept)) continue;
    worker.stop_at = std::min(worker.stop_at, now);
  }
}

// The end of a job that was asked to end at a commit. Workers that overran the grace were stopped
// (StopOverdueLeavers); the deadline is for agents that do not report their end.
void Membership::State::EndWhenAllHaveLeft(absl::Time now) {
  if (!ending.has_value() || (!workers.AllGone() && now < ending->deadline)) return;
  Conclude(Stopped(ending->reason, ending->exit_code), absl::ZeroDuration(), now);
}

void Membership::State::On(const Tick& event, absl::Time now) {
}  // Apply calls CheckDeadlines after every event

void Membership::State::CheckDeadlines(absl::Time now) {
  if (finished) return;
  LoseAwayHosts(now);
  if (verdict.has_value()) {
    if (now >= finish_deadline) FinishAnyway();
  } else if (!started) {
    if (now < start_deadline) return;
    Verdict late;
    late.exit_code = 1;
    late.summary = absl::StrCat("gave up after ", text::DurationText(start_patience),
                                " of waiting for ", views::MissingText(*this));
    Conclude(std::move(late), spec.failure_grace, now);
  } else if (now >= settle_deadline) {
    Conclude(root_cause.Build(), spec.failure_grace, now);
  }
}

// Sets the verdict and starts the end of the job: answers all parked calls, stops the workers, and
// ends the hosts without workers. The other hosts follow when their last worker has exited.
// With `keeps_world` the workers' world lives until the first of them has ended.
void Membership::State::Conclude(Verdict final_verdict, absl::Duration with_grace, absl::Time now,
                                 bool keeps_world) {
  verdict = std::move(final_verdict);
  ReportLeftHosts();
  grace = with_grace;
  finish_deadline = now + grace + kPatience;
  AnswerAllParked();
  if (!keeps_world) AnswerWatches();
  StopLiveWorkers();
  FinishWhenAllGone();
}

void Membership::State::AnswerAllParked() {
  const absl::Status over = OverError(*verdict);
  for (Worker& worker : workers) {
    if (worker.join.has_value() && elastic() && verdict->success) {
      effects.push_back(ReplyReleased{worker.join->call, verdict->summary});
    } else if (worker.join.has_value()) {
      Answer(worker.join->call, over);
    }
    worker.join.reset();
  }
  epochs.rounds.Close(over, &effects);
}

void Membership::State::AnswerWatches() {
  for (const WatchRequested& watch : epochs.watches.TakeAll()) {
    effects.push_back(ReplyWatch{watch.call, EpochChange::kJobOver, verdict->summary});
  }
}

void Membership::State::StopLiveWorkers() {
  std::vector<std::vector<WorkerId>> by_host(hosts.size());
  for (const Worker& worker : workers) {
    if (!worker.life.gone()) by_host[worker.host].push_back(worker.id);
  }
  for (const Host& host : hosts) {
    std::vector<WorkerId>& there = by_host[hosts.IndexOf(host)];
    // An agent that is away gets the command when it attaches again (Reattach).
    if (there.empty() || !host.agent.has_value()) continue;
    effects.push_back(StopWorkersEffect{*host.agent, host.slots.host, std::move(there), grace});
  }
}

void Membership::State::FinishWhenAllGone() {
  for (Host& host : hosts) FinishHost(&host);
  FinishIfAllGone();
}

void Membership::State::FinishHost(Host* host) {
  if (!host->agent.has_value() || host->ended || host->live > 0) return;
  host->ended = true;
  EndHost(*host->agent, host->slots.host, grace);
}

void Membership::State::FinishIfAllGone() {
  if (finished || !workers.AllGone()) return;
  AnswerWatches();
  finished = true;
  effects.push_back(JobFinished{*verdict});
}

void Membership::State::EndHost(Incarnation agent, const std::string& host,
                                absl::Duration with_grace) {
  EndJobEffect effect;
  effect.agent = agent;
  effect.host = host;
  effect.grace = with_grace;
  if (verdict.has_value()) {
    effect.exit_code = verdict->exit_code;
    effect.summary = verdict->summary;
  }
  effects.push_back(std::move(effect));
}

// Finishes the job although some workers are not known to have exited, because they hang or their
// agents do not report. The launcher must not wait without limit.
void Membership::State::FinishAnyway() {
  std::vector<std::string> on_hosts;
  for (Host& host : hosts) {
    if (host.live == 0) continue;
    on_hosts.push_back(host.slots.host);
    host.ended = true;
    if (!host.agent.has_value()) continue;
    EndHost(*host.agent, host.slots.host, absl::ZeroDuration());
  }
  absl::StrAppend(
      &verdict->summary, "; no report that ",
      phrases::Ranks(workers.RanksWhere([](const Worker& w) { return !w.life.gone(); })), " on ",
      phrases::Hosts(on_hosts), " exited");
  AnswerWatches();
  finished = true;
  effects.push_back(JobFinished{*verdict});
}

}  // namespace hvd::rendezvous::membership
