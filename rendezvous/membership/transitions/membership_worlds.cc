// Formation of worlds. A static job forms one when all workers have asked. An elastic job decides
// which workers to wait for and which take part.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/decisions/next_members.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// The worker's entry in the world, from its request. REQUIRES: it has asked.
WorldMember MemberOf(const Worker& worker, const Host& host) {
  return WorldMember{worker.join->worker, host.slots.host, worker.join->address,
                     worker.join->port,   worker.place,    worker.commit};
}

// If an agent has a newer commit than all members: gives it to the members on its host, one of
// which becomes rank 0 and loads it before it gives the others its state. Returns whether it has.
bool CountCopies(const std::vector<Worker*>& members, const Standing& standing) {
  uint64_t newest = 0;
  for (const Worker* worker : members) newest = std::max(newest, worker->commit);
  const uint64_t held = CommitPlaces(standing).Restorable(members);
  if (held <= newest) return false;
  for (Worker* worker : members) {
    if (standing.HostOf(*worker).commit == held) worker->commit = held;
  }
  return true;
}

// Whether this member needs rank 0's state in a world that begins with `newest`.
bool LacksState(const Worker& member, uint64_t newest) {
  // A process that has been in no world asks its rank 0 for the state in any case, also if its
  // worker was a member and the answer was lost.
  const bool is_new = !member.life.member() || member.join->last_epoch == Epoch(0);
  return is_new || member.commit != newest;
}

// Whether all members of a world that begins with `newest` need rank 0's state, as a commit is not
// known, or rank 0 must look for a newer checkpoint first.
bool IsUnsure(const Epochs& epochs, uint64_t newest) {
  // Members of a world that broke before they had its state may all be behind the commit that was
  // its start, and behind a checkpoint.
  if (newest == 0 || newest < std::max(epochs.newest_commit, epochs.checkpoint.commit)) return true;
  // Nor may rank 0 of such a world have looked.
  const bool has_looked = epochs.left.worked || newest > epochs.formed_commit;
  return epochs.world->sync_state && !has_looked;
}

}  // namespace

// Static jobs. `first_late` remembers how far the scan for workers that have not asked has come, so
// that n requests take O(n) in total and not O(n²).
void Membership::State::FormWorldWhenAllAsked() {
  const auto skip_asked = [this] {
    while (workers.first_late < workers.size() && workers[workers.first_late].join.has_value())
      ++workers.first_late;
    return workers.first_late == workers.size();
  };
  if (!skip_asked()) return;
  workers.first_late = 0;  // calls may have been withdrawn since they were skipped
  if (!skip_asked()) return;
  workers.first_late = 0;
  std::vector<Worker*> members;
  uint64_t newest = 0;
  for (Worker& worker : workers) {
    members.push_back(&worker);
    newest = std::max(newest, worker.commit);
  }
  if (!StaticJobMayGoOn(newest, last_time)) return;
  epochs.formed_commit = newest;
  FormWorld(members, true);
}

// Starts the next epoch with these members and answers their calls. The previous epoch is ended
// first, so that its watches and exchanges are answered. REQUIRES: `members` are in rank order,
// with their places set, and have all asked.
void Membership::State::FormWorld(const std::vector<Worker*>& members, bool sync_state) {
  // Above the world of each commit that an agent has, too: if the journal was set back to an older
  // state, e.g. by a restored backup, such a commit must not be newer than those of this world.
  uint64_t last = std::max(epochs.current.value(), CommitWorld(epochs.newest_commit));
  for (const Host& host : hosts) last = std::max(last, CommitWorld(host.commit));
  const Epoch next(last + 1);
  epochs.End(absl::StrCat("world ", next.value(), " has begun"), &effects);
  epochs.current = next;
  epochs.formed_at = last_time;
  epochs.left = Leaving();
  epochs.idle_until = absl::InfinitePast();
  epochs.broken.reset();
  epochs.changing.reset();
  epochs.rounds = ExchangeRounds(static_cast<int>(members.size()));
  auto formed = std::make_shared<World>(World{epochs.current, {}, sync_state});
  formed->members.reserve(members.size());
  for (Worker& worker : workers) worker.life.Make(Move::kLeave);
  for (Worker* worker : members) {
    worker->life.Make(Move::kEnter);
    root_cause.Returned(worker->place.rank);
    worker->last_world = epochs.current;
    formed->members.push_back(MemberOf(*worker, HostOf(*worker)));
    const int first_size = formed->members.front().place.local_size;
    formed->homogeneous = formed->homogeneous && worker->place.local_size == first_size;
  }
  epochs.world = std::move(formed);
  for (Worker* worker : members) {
    effects.push_back(ReplyWorld{worker->join->call, epochs.world, worker->place.rank});
    worker->join.reset();
  }
}

// Reports a world that ended without a failure, after work was done in it. Without this notice the
// next world would follow without a visible reason.
void Membership::State::ReportUnfailedEnd(uint64_t commit) {
  const bool has_reason = !epochs.failed_world && !epochs.left.cause.empty();
  if (!epochs.broken.has_value() || !has_reason || epochs.EndedIdle(commit) ||
      !standing.AllMembersAsk())
    return;
  Note(Notice::Kind::kWorldIdle,
       absl::StrCat("world ", epochs.current.value(), " ended although no worker had failed: ",
                    phrases::RankOnHost(epochs.left.rank, epochs.left.host), ": ",
                    epochs.left.cause));
}

// Forms the next world of an elastic job if it is awaited, its candidates are ready, and the limits
// allow it.
void Membership::State::FormElasticWorld(absl::Time now) {
  if (!started || !standing.ComingTogether()) {
    epochs.StopWaiting();
    return;
  }
  epochs.together_since = std::min(epochs.together_since, now);
  LeaveOutFinished(now);
  if (verdict.has_value()) return;
  std::optional<std::vector<Worker*>> candidates = ChooseMembers(now);
  if (!candidates.has_value()) return;
  if (RestUnreachedHosts(commits.Restorable(*candidates), now)) {
    candidates = ChooseMembers(now);
    if (!candidates.has_value()) return;
  }
  const uint64_t newest = commits.Restorable(*candidates);
  if (!ending.has_value() && !ElasticJobMayGoOn(newest, now)) return;
  // Not before: a worker that is counted as having a copy must load it in this very world.
  const bool counts_copies = CountCopies(*candidates, standing);
  ReportUnfailedEnd(newest);
  const std::vector<Worker*> members = PlaceInRanks(*candidates);
  const bool sync_state = counts_copies || IsUnsure(epochs, newest) ||
                          std::any_of(members.begin(), members.end(),
                                      [&](const Worker* w) { return LacksState(*w, newest); });
  RememberWays(newest);
  const Loss loss = epochs.CountLoss(newest, now);
  epochs.BeginWith(newest);
  epochs.starts_anew =
      Standing::AllStartAnew(std::vector<const Worker*>(members.begin(), members.end()));
  FormWorld(members, sync_state);
  Note(Notice::Kind::kWorldFormed,
       absl::StrCat("world of ", phrases::Count(static_cast<int>(members.size()), "worker"),
                    " formed"));
  auto& formed = std::get<Notice>(effects.back());
  formed.lost_steps = loss.steps;
  formed.lost_time = loss.time;
  formed.starts_anew = epochs.starts_anew;
  ReleaseLeaversLeftOut(now);
  if (ending.has_value()) {
    StopStarting(0, now);
    StopOverdueLeavers(now);
  }
  workers.ForgetGone(epochs.current);
}

std::optional<std::vector<Worker*>> Membership::State::ChooseMembers(absl::Time now) {
  const decisions::MemberLimits limits{least_workers(), spec.max_workers, UnwrittenCommit() > 0};
  return decisions::NextMembers(limits, standing, &workers, &epochs).Choose(now);
}

// Returns those of the candidates that get a place in the next world, in rank order, with their
// places set.
std::vector<Worker*> Membership::State::PlaceInRanks(const std::vector<Worker*>& candidates) {
  // A world that passes the state of a leaving worker on has at least two members, even if
  // max_workers is 1.
  const bool hands_over = !ending.has_value() &&
                          std::any_of(candidates.begin(), candidates.end(),
                                      [this](const Worker* w) { return standing.IsLeaving(*w); });
  const int limit = hands_over ? std::max(spec.max_workers, 2) : spec.max_workers;
  std::vector<Worker*> members;
  for (const placement::PlannedMember& planned :
       placement::AssignElasticRanks(standing.ToCandidates(candidates), limit)) {
    members.push_back(candidates[planned.candidate]);
    members.back()->place = planned.place;
  }
  return members;
}

// Handles members that finished while others ask for the next world: they left too early. If
// nothing else has failed in this world, that counts as its failure.
void Membership::State::LeaveOutFinished(absl::Time now) {
  if (!standing.SomeMemberAsks()) return;  // the others may be about to finish as well
  for (Worker& worker : workers) {
    if (!worker.life.finished() || worker.last_world != epochs.current || worker.join.has_value())
      continue;
    if (standing.MayComeAgain(worker) && now < epochs.together_since + spec.elastic->rejoin_timeout)
      continue;
    worker.life.Make(Move::kDisown);
    const bool was_judged = worker.life.life() == Life::kFailed || worker.life.failure_counted();
    if (was_judged) continue;
    if (!worker.life.gone()) {
      worker.life.Make(Move::kRelease);
      worker.stop_at = now + spec.elastic->drain_grace;
    }
    if (epochs.failed_world) continue;
    epochs.failed_world = epochs.current > Epoch(0);
    Verdict early;
    early.exit_code = 1;
    early.rank = worker.place.rank;
    early.host = HostOf(worker).slots.host;
    early.exit_meaning = epochs.current > Epoch(0)
                             ? "left while others went on"
                             : "exited with code 0 before it called hvd.init()";
    early.summary = absl::StrCat(Name(worker), " ", early.exit_meaning);
    Fail(&worker, std::move(early), now);
    if (verdict.has_value()) return;
  }
}

void Membership::State::On(const LimitsChanged& event, absl::Time now) {
  if (!elastic() || verdict.has_value()) return;
  if (event.min_workers < 1 || event.max_workers < event.min_workers) return;
  if (event.min_workers == spec.min_workers && event.max_workers == spec.max_workers) return;
  spec.min_workers = event.min_workers;
  spec.max_workers = event.max_workers;
  epochs.told_waiting = false;
  Note(Notice::Kind::kLimitsChanged,
       absl::StrCat("at least ", event.min_workers, ", at most ",
                    phrases::Count(event.max_workers, "worker"), " from now on"));
}

}  // namespace hvd::rendezvous::membership
