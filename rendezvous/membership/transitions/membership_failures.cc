// Failures of workers and worlds: which are tolerated, and when the job gives up.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"
#include "rendezvous/placement/machines.h"

namespace hvd::rendezvous::membership {
namespace {

// From WorkerDying to the exit: the kernel takes some 70 ms to free a GB of memory.
constexpr absl::Duration kDyingTime = absl::Seconds(30);
// The number of exceptions before the first commit that are remembered, for IsUserBug.
constexpr size_t kEarlyExceptions = 100;
// The limit of idle worlds in a row of a static job.
constexpr int kMostIdleWorlds = 3;
// The pause before an elastic job's next world after two idle worlds in a row; doubles with each
// further one.
constexpr absl::Duration kFirstRest = absl::Seconds(1);
constexpr absl::Duration kLongestRest = absl::Minutes(1);

}  // namespace

// The worker's collectives can't complete any more. The epoch is broken now and not at the exit, so
// that the others do not wait until the kernel has freed its memory.
void Membership::State::On(const WorkerDying& event, absl::Time now) {
  Worker* worker = workers.Find(event.worker);
  if (worker == nullptr || worker->life.gone() || worker->life.dying() || verdict.has_value())
    return;
  worker->life.Make(Move::kDie);
  if (!worker->life.member()) return;
  // Set now, since the others may be in another world at the time of its exit.
  epochs.failed_world =
      epochs.failed_world || !(worker->life.leaving() || standing.IsLeaving(*worker));
  BreakEpoch(absl::StrCat(Name(*worker), " is dying"));
  if (elastic()) {
    if (standing.IsLeaving(*worker) && !worker->life.stopped()) LeaveLate(worker, " died");
    worker->life.Make(Move::kLeave);
    return;
  }
  // The exit determines the verdict. The exits of its peers may come first if this process has much
  // memory to free, so the search for the root cause waits for it.
  dying_deadline = now + kDyingTime;
  root_cause.Dying(worker->place.rank, HostOf(*worker).slots.host);
}

// The worker has reported its failure. Its process exits after the interpreter's cleanup, which may
// take a second; the failure is counted then. The others don't wait for that.
void Membership::State::FailSoon(Worker* worker, absl::Time now) {
  if (worker->life.failure_told() || worker->life.leaving()) return;
  // It may be a member without knowing: the answer with the world may still be on its way.
  const bool member = worker->life.member();
  worker->life.Make(Move::kLeave);
  if (member) BreakEpoch(absl::StrCat(Name(*worker), " failed: ", worker->exception));
  EndCallsOf(worker, absl::CancelledError(absl::StrCat(Name(*worker), " said that it fails")));
  if (standing.IsLeaving(*worker)) {
    if (member) LeaveLate(worker, " failed");
    return;
  }
  worker->life.Make(Move::kSayFailing);
  worker->stop_at = std::min(worker->stop_at, now + spec.elastic->rejoin_timeout);
  epochs.failed_world = epochs.failed_world || member;
  Note(Notice::Kind::kWorkerFailed, absl::StrCat(Name(*worker), " failed: ", worker->exception),
       worker);
}

// Voids an earlier failure report: the worker asks for a world, or a new process has taken its
// place.
void Membership::State::ResetFailing(Worker* worker, Move why) {
  const bool was_failing = worker->life.failure_told();
  worker->life.Make(why);
  if (!was_failing) return;
  const std::optional<Drain>& drain = HostOf(*worker).drain;
  worker->stop_at = drain.has_value() ? drain->deadline : absl::InfiniteFuture();
}

// Classifies the exit of a worker of an elastic job: a clean leave (it was asked to leave, or its
// host drains, and it had not finished), a success (exit code 0 after it finished, or no worker
// ever asked for a world), or a failure.
void Membership::State::EndElasticWorker(Worker* worker, const WorkerExited& exited,
                                         absl::Time now) {
  const bool member = worker->last_world > Epoch(0) && worker->last_world == epochs.current;
  const std::string meaning = ExitMeaning(exited);
  if (worker->life.member()) {
    BreakEpoch(absl::StrCat(Name(*worker), " has exited: ", meaning));
    if (standing.IsLeaving(*worker) && !worker->life.stopped())
      LeaveLate(worker, " ended by itself");
  }
  // What a rank does after it has finished is judged by its exit code, also if its host leaves.
  const bool is_judged = member && worker->life.finished() && !worker->life.leaving();
  if (!worker->life.failure_told() && !is_judged &&
      (worker->life.leaving() || standing.IsLeaving(*worker))) {
    // Its end was not awaited, so it is not known to be a success.
    if (ending.has_value() && worker->life.finished()) worker->life.Make(Move::kDisown);
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

// Counts the failure of a worker that is no longer in the world: checks for a user bug, puts its
// slot into cooldown, and charges the failure budget.
void Membership::State::Fail(Worker* worker, Verdict as_verdict, absl::Time now) {
  worker->life.Make(Move::kBlame);
  if (!worker->life.failure_told()) {  // else the notice was sent at its report
    const std::string why = worker->exception.empty() ? "" : worker->exception + ", ";
    Note(Notice::Kind::kWorkerFailed,
         absl::StrCat(Name(*worker), " failed: ", why, as_verdict.exit_meaning), worker);
  }
  if (worker->caused_by_peer) return;  // the peer's failure counts instead
  last_failure = std::move(as_verdict);
  if (IsUserBug(*worker)) return Conclude(last_failure, spec.failure_grace, now);
  const Host& host = HostOf(*worker);
  // A bad slot must not use up the whole budget: it may fail `free` times in a row before its
  // cooldown starts; only once if its workers never get as far as a world.
  const bool was_member = worker->last_world > Epoch(0);
  const int free = was_member ? std::max(1, counted_failures.budget().failures / 4) : 1;
  const absl::Duration rest = health.Failed(host.slots.host, worker->slot, free, now);
  if (rest > absl::ZeroDuration()) {
    Note(Notice::Kind::kSlotCooling,
         absl::StrCat("slot ", worker->slot, " of host ", host.slots.host, " rests for ",
                      text::DurationText(rest)),
         nullptr, &host);
  }
  // A newcomer that fails while the others train is not charged to the budget: it did not interrupt
  // them, and the cooldown limits the rate.
  const bool others_train = epochs.current > Epoch(0) && !epochs.broken.has_value();
  if (was_member || !others_train) CountFailure(now);
  if (was_member || others_train || verdict.has_value()) return;
  // Nobody trains, and every started worker fails: give up instead of waiting through ever longer
  // cooldowns.
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

// The error text of a failed worker that points to a bug in the script; empty if its host may be
// the cause.
std::string Membership::State::Complaint(const Worker& worker) const {
  if (!worker.exception.empty() || worker.last_world > Epoch(0)) return worker.exception;
  if (!worker.stderr_tail.empty()) return phrases::OneLine(worker.stderr_tail.back());
  const bool by_itself = absl::StartsWith(last_failure.exit_meaning, "exit code");
  return by_itself ? last_failure.exit_meaning : "";
}

// Whether the failure is a bug in the user's script, which no restart will fix: two workers had the
// same exception before the job's first commit, on two machines if there are several. A worker that
// fails before hvd.init() can't report its exception; its last line on stderr is used instead.
bool Membership::State::IsUserBug(const Worker& worker) {
  const bool others_train =
      epochs.current > Epoch(0) && !epochs.broken.has_value() && worker.last_world == Epoch(0);
  if (commits.HasAny() || others_train) return false;
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

// Whether an elastic job may form another world from this commit now. If not, it pauses after idle
// worlds, or it has ended because a limit was reached.
bool Membership::State::ElasticJobMayGoOn(uint64_t commit, absl::Time now) {
  const bool idle = epochs.EndedIdle(commit);
  const bool lost_peers = idle && epochs.left.caused_by_peer;
  if (lost_peers && !MayGoOnAfterLostPeers(now)) return false;
  if (!lost_peers && (epochs.failed_world || idle) && !MayGoOnAfterFailure(commit, idle, now))
    return false;
  if (!lost_peers) epochs.peers_lost = 0;
  return !ResetLimitIsReached(now);
}

// Counts failures and idle worlds in a row that brought no commit.
bool Membership::State::MayGoOnAfterFailure(uint64_t commit, bool idle, absl::Time now) {
  const bool short_lived = now - epochs.formed_at < counted_failures.budget().window;
  const bool got_nowhere = commit <= epochs.formed_commit && short_lived;
  // The loss of a host is not caused by the training step, and commits that only this host had
  // are unknown, so it does not count as a failure without progress.
  const int in_a_row = !got_nowhere ? 0 : epochs.without_progress + (epochs.lost_hosts ? 0 : 1);
  const int limit = spec.elastic->failures_without_progress;
  const bool too_many = limit > 0 && in_a_row >= limit;
  // Wait for their exits: the verdict contains their last output.
  if (too_many && workers.SomeFail()) return false;
  if (!too_many && idle && RestsAfterIdle(in_a_row, now)) return false;
  epochs.without_progress = in_a_row;
  if (!too_many) return true;
  if (idle) last_failure = epochs.IdleVerdict();
  GiveUp(absl::StrCat(phrases::Count(in_a_row, idle ? "world" : "failure"), " in a row without ",
                      idle ? "an operation that was completed" : "a commit in between"),
         now);
  return false;
}

// Worlds whose members only lost each other are bounded by time and not by number: no worker is to
// blame, and a network that fails for a minute breaks a dozen worlds.
bool Membership::State::MayGoOnAfterLostPeers(absl::Time now) {
  if (epochs.peers_lost == 0) epochs.peers_lost_since = epochs.broken_at;
  const absl::Duration limit = spec.elastic->elastic_timeout;
  if (epochs.peers_lost > 0 && now >= epochs.peers_lost_since + limit) {
    last_failure = epochs.IdleVerdict();
    GiveUp(absl::StrCat(text::DurationText(limit),
                        " of worlds whose ranks lost each other before an operation was completed"),
           now);
    return false;
  }
  if (RestsAfterIdle(epochs.IdleInARow(), now)) {
    epochs.idle_until = std::min(epochs.idle_until, epochs.peers_lost_since + limit);
    return false;
  }
  ++epochs.peers_lost;
  return true;
}

bool Membership::State::ResetLimitIsReached(absl::Time now) {
  const std::optional<int>& limit = spec.elastic->reset_limit;
  if (!limit.has_value() || epochs.current == Epoch(0) ||
      epochs.current.value() <= static_cast<uint64_t>(*limit))
    return false;
  GiveUp(absl::StrCat(phrases::Count(*limit, "reset"), ", the most that the reset limit allows"),
         now);
  return true;
}

// Whether a static job may form another world from this commit. If not, it has ended.
bool Membership::State::StaticJobMayGoOn(uint64_t commit, absl::Time now) {
  epochs.without_progress = epochs.EndedIdle(commit) ? epochs.without_progress + 1 : 0;
  if (epochs.without_progress < kMostIdleWorlds) return true;
  Verdict idle = epochs.IdleVerdict();
  idle.summary = absl::StrCat("gave up: ", epochs.IdleText(epochs.without_progress));
  Conclude(std::move(idle), spec.failure_grace, now);
  return false;
}

// Whether the next world must wait for a pause, so that idle worlds do not follow each other in a
// busy loop.
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

// Ends the job when all members of the newest world are gone. Success: every member reported that
// it finished and exited with 0; or no worker ever asked for a world. Failure: only some finished,
// and nobody is left to continue.
void Membership::State::SucceedWhenDone(absl::Time now) {
  const bool all_gone = std::all_of(workers.begin(), workers.end(), [this](const Worker& w) {
    return w.life.gone() || w.last_world != epochs.current;
  });
  if (workers.empty() || !all_gone) return;
  const auto newest = workers.NewestInSlots();
  int needed = 0, said_so = 0, finished_ones = 0;
  for (const Worker& worker : workers) {
    if (worker.last_world != epochs.current) continue;
    // Before the first world, a failed worker may have been replaced; only the newest one in each
    // slot counts.
    const bool was_replaced =
        epochs.current == Epoch(0) && newest.at({worker.host, worker.slot}) != worker.id;
    if (was_replaced) continue;
    ++needed;
    if (worker.life.finished()) ++said_so;
    if (worker.life.finished() && worker.life.life() == Life::kLeft) ++finished_ones;
  }
  if (said_so == 0) return;
  if (finished_ones < needed) {
    if (ending.has_value() && said_so < needed) return;  // the others were asked to leave
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
