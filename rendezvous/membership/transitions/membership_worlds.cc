// Formation of worlds. A static job forms one when all workers have asked. An elastic job decides
// which workers to wait for, which take part, and which are released.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/commit_places.h"
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

std::string LeavesText(const Host& host) {
  return absl::StrCat("host ", host.slots.host, host.IsResting() ? " rests" : " leaves the job");
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

// Answers a request for the next world at once if the worker is to leave or should get ready first.
// Returns whether it has answered.
bool Membership::State::DeferOrRelease(Worker* worker, const JoinRequested& event) {
  const bool leaves =
      standing.IsLeaving(*worker) && !worker->life.member() && UnwrittenCommit() == 0;
  if (worker->life.released() || leaves) {
    worker->life.Make(Move::kRelease);
    effects.push_back(ReplyReleased{event.call, LeavesText(HostOf(*worker))});
    return true;
  }
  const bool is_new = worker->last_world == Epoch(0);
  if (!event.may_defer || !is_new || epochs.current == Epoch(0)) return false;
  // Its provisional place: the one it would get in a world of the survivors, this worker and the
  // workers that are still starting. If there are no survivors, the call is parked instead.
  std::vector<Worker*> members;
  for (Worker& other : workers) {
    if (other.IsSurvivor()) members.push_back(&other);
  }
  if (members.empty()) return false;
  const size_t self = members.size();
  members.push_back(worker);
  for (Worker& other : workers) {
    if (members.size() >= static_cast<size_t>(spec.max_workers)) break;
    if (&other != worker && standing.IsLive(other) && !other.IsSurvivor())
      members.push_back(&other);
  }
  for (const placement::PlannedMember& member :
       placement::AssignElasticRanks(standing.ToCandidates(members), 1 << 30)) {
    if (member.candidate != self) continue;
    worker->place = member.place;
    effects.push_back(
        ReplyDeferred{event.call, WorldMember{event.worker, HostOf(*worker).slots.host,
                                              event.address, event.port, member.place}});
  }
  return true;
}

// Returns the candidates for the next world if it can form now, else nullopt. Waits for:
// - every survivor, and every finished member that may ask again;
// - the end of members that were stopped or released: only then agents say what they have left;
// - enough workers (min_workers, or start_workers for the first world);
// - without survivors: kFormPatience for workers that are still starting;
// - a commit that is newer than what the candidates can restore, while an agent has it, for
//   kCopyPatience at most;
// - the certain end of the old world, if it may still train (OldWorldEnds).
// In a job that ends, whose workers all leave, one worker is enough to write the newest commit.
std::optional<std::vector<Worker*>> Membership::State::ReadyForWorld(absl::Time now) {
  std::vector<Worker*> staying, leaving, newcomers;
  bool all_asked = true;
  const bool is_to_write = UnwrittenCommit() > 0;
  for (Worker& worker : workers) {
    if (standing.MayComeAgain(worker)) return std::nullopt;
    const bool was_member = epochs.current > Epoch(0) && worker.last_world == epochs.current;
    if (was_member && !worker.life.gone() && now < worker.ends_by) return std::nullopt;
    if (worker.IsSurvivor()) {
      if (!worker.join.has_value()) return std::nullopt;
      (standing.IsLeaving(worker) && !is_to_write ? leaving : staying).push_back(&worker);
    } else if (standing.IsReadyNewcomer(worker) || (is_to_write && worker.WaitsForFirstWorld())) {
      newcomers.push_back(&worker);
    } else if (standing.IsLive(worker)) {
      all_asked = false;
    }
  }
  const bool has_survivors = !staying.empty() || !leaving.empty();
  std::vector<Worker*> others = staying;
  others.insert(others.end(), newcomers.begin(), newcomers.end());
  const auto is_given_up = [&](const Worker* worker) {
    return !others.empty() && commits.IsGivenUp(standing.HostOf(*worker));
  };
  leaving.erase(std::remove_if(leaving.begin(), leaving.end(), is_given_up), leaving.end());
  // If only leaving workers have the newest commit, one of them takes part in one more world, to
  // pass its state on.
  std::vector<Worker*> members = staying;
  const uint64_t theirs = commits.Restorable(others);
  const bool is_needed = commits.Restorable(leaving) > theirs || (staying.empty() && theirs == 0);
  if (!leaving.empty() && !others.empty() && is_needed) {
    members.push_back(
        *std::max_element(leaving.begin(), leaving.end(), [this](const Worker* a, const Worker* b) {
          return std::make_pair(commits.Restorable(*a), -a->place.rank) <
                 std::make_pair(commits.Restorable(*b), -b->place.rank);
        }));
  }
  members.insert(members.end(), newcomers.begin(), newcomers.end());
  const int needed = is_to_write ? 1 : least_workers();
  if (members.empty() || static_cast<int>(members.size()) < needed) {
    epochs.quorum_since = absl::InfiniteFuture();
    return std::nullopt;
  }
  epochs.quorum_since = std::min(epochs.quorum_since, now);
  const bool is_full = static_cast<int>(members.size()) >= spec.max_workers;
  const bool wait_for_more =
      !has_survivors && !all_asked && !is_full && now < epochs.quorum_since + kFormPatience;
  if (wait_for_more || now < standing.OldWorldEnds()) return std::nullopt;
  if (commits.AwaitsLeaver(members, now) || commits.HolderAwaited(members, now) != nullptr)
    return std::nullopt;
  return members;
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
  std::optional<std::vector<Worker*>> ready = ReadyForWorld(now);
  if (!ready.has_value()) return;
  if (RestUnreachedHosts(commits.Restorable(*ready), now)) {
    ready = ReadyForWorld(now);
    if (!ready.has_value()) return;
  }
  const uint64_t newest = commits.Restorable(*ready);
  if (!ending.has_value() && !ElasticJobMayGoOn(newest, now)) return;
  // Not before: a worker that is counted as having a copy must load it in this very world.
  const bool counts_copies = CountCopies(*ready, standing);
  ReportUnfailedEnd(newest);
  std::vector<Worker*> members;
  // Without a known commit, or if rank 0 must load it from its agent first, all members need rank
  // 0's state.
  bool sync_state = newest == 0 || counts_copies;
  // A world that passes the state of a leaving worker on has at least two members, even if
  // max_workers is 1.
  const bool hands_over = !ending.has_value() &&
                          std::any_of(ready->begin(), ready->end(),
                                      [this](const Worker* w) { return standing.IsLeaving(*w); });
  const int limit = hands_over ? std::max(spec.max_workers, 2) : spec.max_workers;
  for (const placement::PlannedMember& member :
       placement::AssignElasticRanks(standing.ToCandidates(*ready), limit)) {
    Worker* worker = (*ready)[member.candidate];
    // A process that has been in no world asks its rank 0 for the state in any case, also if its
    // worker was a member and the answer was lost.
    const bool is_new = !worker->life.member() || worker->join->last_epoch == Epoch(0);
    sync_state = sync_state || is_new || worker->commit != newest;
    worker->place = member.place;
    members.push_back(worker);
  }
  // Members of a world that broke before they had its state may all be behind the commit that was
  // its start, and behind a checkpoint. Rank 0 looks for one when it synchronizes.
  sync_state = sync_state || newest < std::max(epochs.newest_commit, epochs.checkpoint.commit);
  // Nor may rank 0 of such a world have looked.
  const bool has_looked = epochs.left.worked || newest > epochs.formed_commit;
  sync_state = sync_state || (epochs.world->sync_state && !has_looked);
  RememberWays(newest);
  const Loss loss = epochs.CountLoss(newest, now);
  if (newest > epochs.formed_commit) epochs.tries = 0;
  epochs.formed_commit = newest;
  epochs.newest_commit = std::max(epochs.newest_commit, newest);
  epochs.failed_world = epochs.lost_hosts = false;
  epochs.failed_starts = 0;
  epochs.StopWaiting();
  FormWorld(members, sync_state);
  Note(Notice::Kind::kWorldFormed,
       absl::StrCat("world of ", phrases::Count(static_cast<int>(members.size()), "worker"),
                    " formed"));
  auto& formed = std::get<Notice>(effects.back());
  formed.lost_steps = loss.steps;
  formed.lost_time = loss.time;
  for (Worker& worker : workers) {
    if (worker.join.has_value() && standing.IsLeaving(worker))
      Release(&worker, LeavesText(HostOf(worker)), now);
  }
  if (ending.has_value()) {
    StopStarting(0, now);
    StopOverdueLeavers(now);
  }
  workers.ForgetGone(epochs.current);
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

// Answers a worker's request with "released": it should exit. REQUIRES: it has asked for the next
// world.
void Membership::State::Release(Worker* worker, const std::string& reason, absl::Time now) {
  worker->life.Make(Move::kLeave);
  worker->life.Make(Move::kRelease);
  worker->stop_at = std::min(worker->stop_at, now + spec.elastic->drain_grace);
  worker->ends_by = worker->stop_at;
  effects.push_back(ReplyReleased{worker->join->call, reason});
  worker->join.reset();
}

// Releases the workers that wait for their first world and are to leave: they have nothing to
// commit. Members take part in the decision on the next world: one of them may have to pass its
// state on.
void Membership::State::ReleaseLeaversWithoutWorld(absl::Time now) {
  if (UnwrittenCommit() > 0) return;
  for (Worker& worker : workers) {
    if (worker.WaitsForFirstWorld() && standing.IsLeaving(worker))
      Release(&worker, LeavesText(HostOf(worker)), now);
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

// Releases workers beyond the maximum and the spares: those that wait for their first world, the
// newest first, but last the one that brings the newest commit. Only LimitsChanged and
// HolderWithoutWorker make a surplus.
void Membership::State::ReleaseSurplus(absl::Time now) {
  // A worker beyond the maximum may have been started to bring a commit (HolderWithoutWorker).
  const bool awaits_commit = epochs.quorum_since != absl::InfiniteFuture() &&
                             commits.HolderAwaited(commits.Candidates(), now) != nullptr;
  if (awaits_commit) return;
  int64_t surplus = -(static_cast<int64_t>(spec.max_workers) + spec.elastic->spares);
  std::vector<Worker*> waiting;
  for (Worker& worker : workers) {
    if (standing.IsLive(worker)) ++surplus;
    if (standing.IsReadyNewcomer(worker)) waiting.push_back(&worker);
  }
  std::stable_sort(waiting.begin(), waiting.end(), [this](const Worker* a, const Worker* b) {
    return commits.Restorable(*a) > commits.Restorable(*b);
  });
  while (surplus-- > 0 && !waiting.empty()) {
    Release(waiting.back(),
            absl::StrCat("the job has at most ", phrases::Count(spec.max_workers, "worker")), now);
    waiting.pop_back();
  }
}

// Releases the workers of draining hosts, after all have asked, if those who stay have the newest
// commit but are too few for a world: further workers may come only after the draining hosts'
// grace.
void Membership::State::ReleaseLeaversWhenTooFewStay(absl::Time now) {
  if (!standing.ComingTogether() || UnwrittenCommit() > 0) return;
  std::vector<Worker*> staying, leaving;
  int live = 0;
  for (Worker& worker : workers) {
    if (standing.MayComeAgain(worker)) return;
    if (standing.IsLive(worker)) ++live;
    if (!worker.IsSurvivor()) continue;
    if (!worker.join.has_value()) return;
    (HostOf(worker).drain.has_value() ? leaving : staying).push_back(&worker);
  }
  if (staying.empty() || live >= least_workers()) return;
  if (commits.Restorable(staying) < commits.Restorable(leaving)) return;
  for (Worker* const worker : leaving) Release(worker, LeavesText(HostOf(*worker)), now);
}

// Releases all survivors if each of them must leave and has asked, and no newcomer can take over.
void Membership::State::ReleaseWhenNobodyStays(absl::Time now) {
  if (!standing.ComingTogether() || UnwrittenCommit() > 0) return;
  for (const Worker& worker : workers) {
    if (worker.IsSurvivor() && !(worker.join.has_value() && standing.IsLeaving(worker))) return;
    if (!worker.IsSurvivor() && standing.IsLive(worker)) return;  // a newcomer that may take over
  }
  for (Worker& worker : workers) {
    if (!worker.IsSurvivor()) continue;
    epochs.End("every host leaves", &effects);  // after a commit: nothing is lost
    Release(&worker, LeavesText(HostOf(worker)), now);
  }
}

}  // namespace hvd::rendezvous::membership
