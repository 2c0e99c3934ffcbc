// Releases of workers of an elastic job: those that leave, and those beyond the maximum.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

std::string LeavesText(const Host& host) {
  return absl::StrCat("host ", host.slots.host, host.IsResting() ? " rests" : " leaves the job");
}

}  // namespace

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

// Releases the leaving workers that have asked and are not in the world that has just formed.
void Membership::State::ReleaseLeaversLeftOut(absl::Time now) {
  for (Worker& worker : workers) {
    if (worker.join.has_value() && standing.IsLeaving(worker))
      Release(&worker, LeavesText(HostOf(worker)), now);
  }
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
