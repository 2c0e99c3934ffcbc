// Failures of workers and worlds: which are tolerated, and when the job gives up.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/decisions/continuation.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"
#include "rendezvous/placement/machines.h"

namespace hvd::rendezvous::membership {
namespace {

// From WorkerDying to the exit: the kernel takes some 70 ms to free a GB of memory.
constexpr absl::Duration kDyingTime = absl::Seconds(30);
// The limit of idle worlds in a row of a static job.
constexpr int kMostIdleWorlds = 3;
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

// A worker has reported that the job must end. `why` becomes the verdict.
void Membership::State::EndAsReported(const std::string& why, absl::Time now) {
  Verdict reported;
  reported.exit_code = 1;
  reported.summary = phrases::OneLine(why);
  Conclude(std::move(reported), spec.failure_grace, now);
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
    const bool left_well = worker->life.released() && !worker->life.stopped() && exited.signal == 0;
    if (ending.has_value() && member && worker->place.rank == 0)
      ending->was_left_well = left_well && exited.unknown_end.empty();
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
  failures.last = std::move(as_verdict);
  const Host& host = HostOf(*worker);
  const bool was_member = worker->last_world > Epoch(0);
  const bool others_train = epochs.current > Epoch(0) && !epochs.broken.has_value();
  const bool may_be_bug = !commits.HasAny() && (was_member || !others_train);
  if (may_be_bug && failures.IsUserBug(*worker, placement::MachineName(host.slots),
                                       /*alone=*/hosts.AttachedMachines() < 2))
    return Conclude(failures.last, spec.failure_grace, now);
  // A bad slot must not use up the whole budget: it may fail `free` times in a row before its
  // cooldown starts; only once if its workers never get as far as a world.
  const int free = was_member ? std::max(1, failures.counted.budget().failures / 4) : 1;
  const absl::Duration rest = health.Failed(host.slots.host, worker->slot, free, now);
  if (rest > absl::ZeroDuration()) {
    Note(Notice::Kind::kSlotCooling,
         absl::StrCat("slot ", worker->slot, " of host ", host.slots.host, " rests for ",
                      text::DurationText(rest)),
         nullptr, &host);
  }
  // A newcomer that fails while the others train is not charged to the budget: it did not interrupt
  // them, and the cooldown limits the rate.
  if (was_member || !others_train) CountFailure(now);
  if (was_member || others_train || verdict.has_value()) return;
  // Nobody trains, and every started worker fails: give up instead of waiting through ever longer
  // cooldowns.
  const int limit = spec.elastic->failures_without_progress * std::max(1, hosts.AttachedSlots());
  if (++epochs.failed_starts >= limit && limit > 0)
    GiveUp(absl::StrCat(epochs.failed_starts, " starts in a row failed"), now);
}

void Membership::State::CountFailure(absl::Time now) {
  if (verdict.has_value() || failures.counted.Count(now)) return;
  GiveUp(absl::StrCat("more than ", phrases::Count(failures.counted.budget().failures, "failure"),
                      " within ", text::DurationText(failures.counted.budget().window)),
         now);
}

void Membership::State::GiveUp(const std::string& why, absl::Time now) {
  Conclude(failures.GaveUp(why), spec.failure_grace, now);
}

// Whether an elastic job may form another world from this commit now. If not, it pauses after idle
// worlds, or it has ended because a limit was reached.
bool Membership::State::ElasticJobMayGoOn(uint64_t commit, absl::Time now) {
  decisions::Continuation continuation(*spec.elastic, workers.SomeFail(), &epochs);
  const bool goes_on = continuation.Decide(commit, now);
  if (!continuation.pause().empty()) Note(Notice::Kind::kWorldIdle, continuation.pause());
  if (continuation.limit_reached().empty()) return goes_on;
  if (continuation.is_by_idle()) failures.last = epochs.IdleVerdict();
  GiveUp(continuation.limit_reached(), now);
  return false;
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
    if (!failures.last.summary.empty()) return Conclude(failures.last, spec.failure_grace, now);
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
