// How a job takes the ends of its workers and of its worlds: what is forgiven, and when it has
// failed too often.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/exit_meaning.h"
#include "rendezvous/membership/membership_state.h"
#include "rendezvous/phrases/phrases.h"
#include "rendezvous/placement/machines.h"

namespace hvd::rendezvous::membership {
namespace {

// From the first sign of a process's end to its exit: some 70 ms a GB.
constexpr absl::Duration kDyingTime = absl::Seconds(30);
// So many are remembered.
constexpr size_t kEarlyExceptions = 100;
// Of a static job, in a row.
constexpr int kMostIdleWorlds = 3;
// Before an elastic job's next world, after the second idle one in a row; doubles.
constexpr absl::Duration kFirstRest = absl::Seconds(1);
constexpr absl::Duration kLongestRest = absl::Minutes(1);

}  // namespace

// Its collectives can't complete any more, though the exit is still to come.
void Membership::State::On(const WorkerDying& event, absl::Time now) {
  Worker* worker = workers.Find(event.worker);
  if (worker == nullptr || worker->life.gone() || worker->life.dying() || verdict.has_value())
    return;
  worker->life.Make(Move::kDie);
  if (!worker->life.member()) return;
  // By the time of its exit the others may be in another world.
  epochs.failed_world = epochs.failed_world || !(worker->life.leaving() || IsLeaving(*worker));
  BreakEpoch(absl::StrCat(Name(*worker), " is dying"));
  if (elastic()) {
    if (IsLeaving(*worker) && !worker->life.stopped()) LeaveLate(worker, " died");
    worker->life.Make(Move::kLeave);
    return;
  }
  // The exit will be judged. The others' ends come before it if it has much memory to free.
  dying_deadline = now + kDyingTime;
  root_cause.Dying(worker->place.rank, HostOf(*worker).slots.host);
}

// It has said why it fails. Its end comes when the interpreter has tidied up, which may take a
// second, and is judged then; the others need not wait for it.
void Membership::State::FailSoon(Worker* worker, absl::Time now) {
  if (worker->life.failure_told() || worker->life.leaving()) return;
  // It may not have heard yet that it is one.
  const bool member = worker->life.member();
  worker->life.Make(Move::kLeave);
  if (member) BreakEpoch(absl::StrCat(Name(*worker), " failed: ", worker->exception));
  EndCallsOf(worker, absl::CancelledError(absl::StrCat(Name(*worker), " said that it fails")));
  if (IsLeaving(*worker)) {
    if (member) LeaveLate(worker, " failed");
    return;
  }
  worker->life.Make(Move::kSayFailing);
  worker->stop_at = std::min(worker->stop_at, now + spec.elastic->rejoin_timeout);
  epochs.failed_world = epochs.failed_world || member;
  Note(Notice::Kind::kWorkerFailed, absl::StrCat(Name(*worker), " failed: ", worker->exception),
       worker);
}

// It asks for a world, or another process speaks for it, whatever it said before.
void Membership::State::ResetFailing(Worker* worker, Move why) {
  const bool was_failing = worker->life.failure_told();
  worker->life.Make(why);
  if (!was_failing) return;
  const std::optional<Drain>& drain = HostOf(*worker).drain;
  worker->stop_at = drain.has_value() ? drain->deadline : absl::InfiniteFuture();
}

void Membership::State::EndElasticWorker(Worker* worker, const WorkerExited& exited,
                                         absl::Time now) {
  const bool member = worker->last_world > Epoch(0) && worker->last_world == epochs.current;
  const std::string meaning = ExitMeaning(exited);
  if (worker->life.member()) {
    BreakEpoch(absl::StrCat(Name(*worker), " has exited: ", meaning));
    if (IsLeaving(*worker) && !worker->life.stopped()) LeaveLate(worker, " ended by itself");
  }
  if (!worker->life.failure_told() && (worker->life.leaving() || IsLeaving(*worker))) {
    const std::string how = worker->life.stopped()    ? " was stopped"
                            : worker->life.released() ? " left"
                                                      : absl::StrCat(" left by itself: ", meaning);
    workers.End(worker, Move::kEndWell, &hosts);
    return Note(Notice::Kind::kWorkerLeft, absl::StrCat(Name(*worker), how), worker);
  }
  const bool never_needed_a_world =
      epochs.current == Epoch(0) &&
      std::none_of(workers.begin(), workers.end(),
                   [](const Worker& w) { return w.join.has_value(); });
  if (ExitedWithZero(exited) && ((worker->life.finished() && member) || never_needed_a_world)) {
    worker->life.Make(Move::kFinish);
    workers.End(worker, Move::kEndWell, &hosts);
    return Note(Notice::Kind::kWorkerLeft, absl::StrCat(Name(*worker), " finished"), worker);
  }
  RootCause cause;
  const int rank = worker->place.rank;
  const std::string& host = HostOf(*worker).slots.host;
  if (!worker->exception.empty()) cause.Said(rank, host, worker->exception, false);
  cause.Exited(rank, host, exited);
  epochs.failed_world = epochs.failed_world || member;
  workers.End(worker, Move::kEndBadly, &hosts);
  Fail(worker, cause.Build(), now);
}

// It has come to a bad end, and is not in the epoch any more.
void Membership::State::Fail(Worker* worker, Verdict as_verdict, absl::Time now) {
  worker->life.Make(Move::kBlame);
  if (!worker->life.failure_told()) {  // else it was told when it said so
    const std::string why = worker->exception.empty() ? "" : worker->exception + ", ";
    Note(Notice::Kind::kWorkerFailed,
         absl::StrCat(Name(*worker), " failed: ", why, as_verdict.exit_meaning), worker);
  }
  if (worker->caused_by_peer) return;  // whose failure was counted
  last_failure = std::move(as_verdict);
  if (IsUserBug(*worker)) return Conclude(last_failure, spec.failure_grace, now);
  const Host& host = HostOf(*worker);
  // No slot is to spend the budget alone. One that lets nobody get to a world rests sooner.
  const bool was_member = worker->last_world > Epoch(0);
  const int free = was_member ? std::max(1, counted_failures.budget().failures / 4) : 1;
  const absl::Duration rest = health.Failed(host.slots.host, worker->slot, free, now);
  if (rest > absl::ZeroDuration()) {
    Note(Notice::Kind::kSlotCooling,
         absl::StrCat("slot ", worker->slot, " of host ", host.slots.host, " rests for ",
                      text::DurationText(rest)),
         nullptr, &host);
  }
  // A newcomer that fails while the others train costs them nothing; its slot rests longer and
  // longer.
  const bool others_train = epochs.current > Epoch(0) && !epochs.broken.has_value();
  if (was_member || !others_train) CountFailure(now);
  if (was_member || others_train || verdict.has_value()) return;
  // Nobody trains, and whoever is started fails: rests would only draw it out.
  const int limit = spec.elastic->failures_without_progress * std::max(1, hosts.AttachedSlots());
  if (++epochs.failed_starts >= limit && limit > 0)
    GiveUp(absl::StrCat(epochs.failed_starts, " starts in a row failed"), now);
}

void Membership::State::CountFailure(absl::Time now) {
  if (verdict.has_value() || counted_failures.Count(now)) return;
  GiveUp(absl::StrCat("more than ", phrases::Count(counted_failures.budget().failures, "failure"),
                      " within ", text::DurationText(counted_failures.budget().window)),
         now);
}

// What a failed worker's own fault was; empty if it may be its host's.
std::string Membership::State::Complaint(const Worker& worker) const {
  if (!worker.exception.empty() || worker.last_world > Epoch(0)) return worker.exception;
  if (!worker.stderr_tail.empty()) return phrases::OneLine(worker.stderr_tail.back());
  const bool by_itself = absl::StartsWith(last_failure.exit_meaning, "exit code");
  return by_itself ? last_failure.exit_meaning : "";
}

// The same exception before the first commit, in two workers, on two machines if there are so many:
// no restart will help. What fails before hvd.init() can't say its exception, but prints it.
bool Membership::State::IsUserBug(const Worker& worker) {
  const bool others_train =
      epochs.current > Epoch(0) && !epochs.broken.has_value() && worker.last_world == Epoch(0);
  if (epochs.newest_commit > 0 || others_train) return false;
  const std::string text = Complaint(worker);
  if (text.empty()) return false;
  const std::string& machine = placement::MachineName(HostOf(worker).slots);
  const bool alone = hosts.AttachedMachines() < 2;
  for (const auto& [other_text, other_machine] : early_exceptions) {
    if (other_text == text && (alone || other_machine != machine)) return true;
  }
  if (early_exceptions.size() == kEarlyExceptions) early_exceptions.erase(early_exceptions.begin());
  early_exceptions.emplace_back(text, machine);
  return false;
}

void Membership::State::GiveUp(const std::string& why, absl::Time now) {
  Verdict failure = last_failure;
  failure.success = false;
  if (failure.exit_code == 0) failure.exit_code = 1;
  const std::string last =
      failure.summary.empty() ? "" : absl::StrCat("; the last: ", failure.summary);
  failure.summary = absl::StrCat("gave up after ", why, last);
  Conclude(std::move(failure), spec.failure_grace, now);
}

// Whether the budgets of an elastic job allow another world now, which starts from this commit;
// else it rests, or has ended.
bool Membership::State::ElasticJobMayGoOn(uint64_t commit, absl::Time now) {
  const bool idle = epochs.EndedIdle(commit);
  if (epochs.failed_world || idle) {
    const bool short_lived = now - epochs.formed_at < counted_failures.budget().window;
    const bool got_nowhere = commit <= epochs.formed_commit && short_lived;
    // What happens to hosts is not done by a step; and commits that went with them are not known.
    const int in_a_row = !got_nowhere ? 0 : epochs.without_progress + (epochs.lost_hosts ? 0 : 1);
    const int limit = spec.elastic->failures_without_progress;
    const bool too_many = limit > 0 && in_a_row >= limit;
    if (too_many && workers.SomeFail()) return false;  // the verdict is to have their last words
    if (!too_many && idle && RestsAfterIdle(in_a_row, now)) return false;
    epochs.without_progress = in_a_row;
    if (too_many) {
      if (idle) last_failure = epochs.IdleVerdict();
      GiveUp(
          absl::StrCat(phrases::Count(in_a_row, idle ? "world" : "failure"), " in a row without ",
                       idle ? "an operation that was completed" : "a commit in between"),
          now);
      return false;
    }
  }
  const std::optional<int>& limit = spec.elastic->reset_limit;
  if (limit.has_value() && epochs.current > Epoch(0) &&
      epochs.current.value() > static_cast<uint64_t>(*limit)) {
    // Horovod's words: scripts look for them.
    GiveUp(absl::StrCat(phrases::Count(*limit, "reset"),
                        ": Horovod was shutdown because number of resets during elastic job "
                        "exceeded limit: ",
                        *limit),
           now);
    return false;
  }
  return true;
}

// Whether a static job may have another world, which starts from this commit; else it has ended.
bool Membership::State::StaticJobMayGoOn(uint64_t commit, absl::Time now) {
  epochs.without_progress = epochs.EndedIdle(commit) ? epochs.without_progress + 1 : 0;
  if (epochs.without_progress < kMostIdleWorlds) return true;
  Verdict idle = epochs.IdleVerdict();
  idle.summary = absl::StrCat("gave up: ", epochs.IdleText(epochs.without_progress));
  Conclude(std::move(idle), spec.failure_grace, now);
  return false;
}

// Whether the next world has to wait, so that they don't follow one another without a pause.
bool Membership::State::RestsAfterIdle(int in_a_row, absl::Time now) {
  if (epochs.idle_until == absl::InfinitePast()) {
    const int doublings = std::min(in_a_row - 2, 20);
    const absl::Duration rest = doublings < 0
                                    ? absl::ZeroDuration()
                                    : std::min(kLongestRest, kFirstRest * (1 << doublings));
    epochs.idle_until = now + rest;
    Note(Notice::Kind::kWorldIdle,
         absl::StrCat(epochs.IdleText(in_a_row), "; the next one follows ",
                      rest > absl::ZeroDuration() ? absl::StrCat("after ", text::DurationText(rest))
                                                  : "at once"));
  }
  return now < epochs.idle_until;
}

// Every member of the newest world has said that it finished and has exited with 0; or none ever
// wanted a world. If some did and the rest failed, nobody is left who could go on.
void Membership::State::SucceedWhenDone(absl::Time now) {
  const bool all_gone = std::all_of(workers.begin(), workers.end(), [this](const Worker& w) {
    return w.life.gone() || w.last_world != epochs.current;
  });
  if (workers.empty() || !all_gone) return;
  const auto newest = workers.NewestInSlots();
  int needed = 0, finished_ones = 0;
  bool nobody_said_so = true;
  for (const Worker& worker : workers) {
    if (worker.last_world != epochs.current) continue;
    // Before its first world another worker may have come in its place.
    const bool was_replaced =
        epochs.current == Epoch(0) && newest.at({worker.host, worker.slot}) != worker.id;
    if (was_replaced) continue;
    ++needed;
    nobody_said_so = nobody_said_so && !worker.life.finished();
    if (worker.life.finished() && worker.life.life() == Life::kLeft) ++finished_ones;
  }
  if (nobody_said_so) return;
  if (finished_ones < needed) {
    if (!last_failure.summary.empty()) return Conclude(last_failure, spec.failure_grace, now);
    return GiveUp(absl::StrCat("all workers had ended: only ", finished_ones, " of ",
                               phrases::Count(needed, "rank"), " finished"),
                  now);
  }
  Verdict success;
  success.success = true;
  success.summary = epochs.current > Epoch(0)
                        ? absl::StrCat(phrases::Count(finished_ones, "rank"), " finished")
                        : absl::StrCat(phrases::Count(finished_ones, "worker"),
                                       " exited with code 0 without hvd.init()");
  Conclude(std::move(success), spec.failure_grace, now);
}

}  // namespace hvd::rendezvous::membership
