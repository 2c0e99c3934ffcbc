#include "rendezvous/membership/decisions/copy_plan.h"

#include <algorithm>

#include "rendezvous/membership/epochs.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

// How well the host can keep copies of `holder`'s commits: best the present keeper, then one with
// workers, then any; last one that has tried in vain.
int RankAsKeeper(const Host& host, const Host& holder) {
  if (host.no_copies_from == holder.commit_address) return 0;
  if (host.copies_from == holder.commit_address) return 3;
  return host.live > 0 ? 2 : 1;
}

}  // namespace

CopyPlan::CopyPlan(const Standing& standing)
    : standing_(standing),
      commits_(standing),
      elsewhere_(commits_),
      is_finishing_(standing.IsFinishing()) {
  for (const Host& host : hosts()) {
    const bool stays = host.agent.has_value() && !host.ended && !host.drain.has_value();
    if (stays && !host.held && !host.commit_address.empty()) possible_keepers_.push_back(&host);
  }
}

CopyPlan::Copying CopyPlan::Wanted() const {
  if (standing_.ComingTogether()) {
    const std::vector<const Worker*> candidates = commits_.Candidates();
    const Host* const above = candidates.empty() ? nullptr : commits_.HolderAbove(candidates);
    if (above != nullptr) return {above, KeeperAmong(*above, candidates)};
  }
  std::vector<int> machines;  // once they are needed
  for (const Host& host : hosts()) {
    if (!host.drain.has_value() || host.ended || !host.agent.has_value()) continue;
    if (host.live > 0 || elsewhere_.Has(host)) continue;
    if (machines.empty()) machines = hosts().Machines();
    if (const Host* const keeper = Keeper(host, machines); keeper != nullptr)
      return {&host, keeper};
    if (const Host* const keeper = Keeper(host, {}); keeper != nullptr) return {&host, keeper};
  }
  if (const Host* const lone = LoneHolder(); lone != nullptr)
    return {lone, Keeper(*lone, hosts().Machines())};
  const Host* const newest = commits_.HolderOfNewest();
  // Nobody trains: its agent could be lost before the next workers ask.
  if (newest == nullptr || workers().SomeSurvive() || elsewhere_.Has(*newest)) return {};
  const Host* const elsewhere = Keeper(*newest, hosts().Machines());
  return {newest, elsewhere != nullptr ? elsewhere : Keeper(*newest, {})};
}

bool CopyPlan::IsNotReplacedYet(const Host& host, const Copying& wanted) {
  const auto& [holder, next] = wanted;
  if (next == nullptr || next == &host || !host.has_copy) return false;
  const bool has_copy = next->has_copy && next->copies_from == holder->commit_address;
  return host.copies_from == holder->commit_address && !has_copy;
}

bool CopyPlan::MayDrop() const {
  const Epochs& epochs = standing_.epochs();
  const bool is_settled =
      epochs.whole() && !epochs.changing.has_value() && !standing_.ComingTogether();
  return is_settled && commits_.CommittedInWorld();
}

const Host* CopyPlan::HolderWithoutWorker(absl::Time now) const {
  if (standing_.epochs().quorum_since == absl::InfiniteFuture()) return nullptr;
  const std::vector<const Worker*> candidates = commits_.Candidates();
  const Host* const holder = commits_.HolderAwaited(candidates, now);
  if (holder == nullptr) return nullptr;
  const Host* const keeper = KeeperAmong(*holder, candidates);
  if (keeper != nullptr && keeper->no_copies_from != holder->commit_address) return nullptr;
  const bool has_worker =
      std::any_of(workers().begin(), workers().end(), [&](const Worker& worker) {
        return standing_.IsLive(worker) && &standing_.HostOf(worker) == holder;
      });
  return has_worker ? nullptr : holder;
}

bool CopyPlan::MustGiveCommit(const Host& host, absl::Time now) const {
  if (now >= host.drain->deadline || is_finishing_) return false;
  if (host.has_copy && IsNotReplacedYet(host, Wanted())) return true;
  if (elsewhere_.Has(host)) return false;
  return Keeper(host, {}) != nullptr || elsewhere_.IsAlone(host);
}

// If all survivors are on one machine, a host of that machine; else null.
const Host* CopyPlan::LoneHolder() const {
  if (!workers().SomeSurvive()) return nullptr;
  const std::vector<int> machines = hosts().Machines();
  const Worker* first = nullptr;
  for (const Worker& worker : workers()) {
    if (!worker.IsSurvivor()) continue;
    if (first == nullptr) first = &worker;
    if (machines[worker.host] != machines[first->host]) return nullptr;
  }
  return first == nullptr ? nullptr : &standing_.HostOf(*first);
}

// The host that should keep copies of `holder`'s commits: see RankAsKeeper. If `machines` are
// given, one on another machine. Null if there is none.
const Host* CopyPlan::Keeper(const Host& holder, const std::vector<int>& machines) const {
  if (holder.commit_address.empty() || !holder.agent.has_value()) return nullptr;
  const Host* best = nullptr;
  for (const Host* const host : possible_keepers_) {
    if (host == &holder) continue;
    const bool same =
        !machines.empty() && machines[hosts().IndexOf(*host)] == machines[hosts().IndexOf(holder)];
    if (same) continue;
    if (best == nullptr || RankAsKeeper(*host, holder) > RankAsKeeper(*best, holder)) best = host;
  }
  return best;
}

// A host of one of the workers that can take a copy from `holder`: see RankAsKeeper.
const Host* CopyPlan::KeeperAmong(const Host& holder,
                                  absl::Span<const Worker* const> candidates) const {
  if (holder.commit_address.empty() || !holder.agent.has_value()) return nullptr;
  const Host* best = nullptr;
  for (const Worker* worker : candidates) {
    const Host& host = standing_.HostOf(*worker);
    if (!host.agent.has_value() || host.ended || host.commit_address.empty()) continue;
    if (best == nullptr || RankAsKeeper(host, holder) > RankAsKeeper(*best, holder)) best = &host;
  }
  return best;
}

}  // namespace hvd::rendezvous::membership::decisions
