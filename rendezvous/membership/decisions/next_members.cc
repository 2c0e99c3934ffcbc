#include "rendezvous/membership/decisions/next_members.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hvd::rendezvous::membership::decisions {

std::optional<std::vector<Worker*>> NextMembers::Choose(absl::Time now) {
  const std::optional<Asking> asking = WhoAsks(now);
  if (!asking.has_value()) return std::nullopt;
  std::vector<Worker*> members = MembersOf(*asking);
  if (!AreEnough(members, now) || AwaitsStarting(*asking, members.size(), now) ||
      now < standing_.OldWorldEnds() || commits_.AwaitsLeaver(members, now) ||
      commits_.HolderAwaited(members, now) != nullptr)
    return std::nullopt;
  return members;
}

std::optional<NextMembers::Asking> NextMembers::WhoAsks(absl::Time now) const {
  Asking asking;
  for (Worker& worker : workers_) {
    if (standing_.MayComeAgain(worker)) return std::nullopt;
    const bool was_member = epochs_.current > Epoch(0) && worker.last_world == epochs_.current;
    if (was_member && !worker.life.gone() && now < worker.ends_by) return std::nullopt;
    if (worker.IsSurvivor()) {
      if (!worker.join.has_value()) return std::nullopt;
      const bool leaves = standing_.IsLeaving(worker) && !limits_.is_to_write;
      (leaves ? asking.leaving : asking.staying).push_back(&worker);
    } else if (standing_.IsReadyNewcomer(worker) ||
               (limits_.is_to_write && worker.WaitsForFirstWorld())) {
      asking.newcomers.push_back(&worker);
    } else if (standing_.IsLive(worker)) {
      asking.others_start = true;
    }
  }
  return asking;
}

std::vector<Worker*> NextMembers::MembersOf(const Asking& asking) const {
  std::vector<Worker*> members = asking.staying;
  if (Worker* const last = LastToLeave(asking); last != nullptr) members.push_back(last);
  members.insert(members.end(), asking.newcomers.begin(), asking.newcomers.end());
  return members;
}

Worker* NextMembers::LastToLeave(const Asking& asking) const {
  std::vector<Worker*> others = asking.staying;
  others.insert(others.end(), asking.newcomers.begin(), asking.newcomers.end());
  if (others.empty()) return nullptr;
  std::vector<Worker*> leaving;
  for (Worker* const worker : asking.leaving) {
    if (!commits_.IsGivenUp(standing_.HostOf(*worker))) leaving.push_back(worker);
  }
  if (leaving.empty()) return nullptr;
  const uint64_t theirs = commits_.Restorable(others);
  const bool is_first_state = asking.staying.empty() && theirs == 0;
  if (commits_.Restorable(leaving) <= theirs && !is_first_state) return nullptr;
  const auto is_before = [this](const Worker* a, const Worker* b) {
    return std::make_pair(commits_.Restorable(*a), -a->place.rank) <
           std::make_pair(commits_.Restorable(*b), -b->place.rank);
  };
  return *std::max_element(leaving.begin(), leaving.end(), is_before);
}

bool NextMembers::AreEnough(const std::vector<Worker*>& members, absl::Time now) {
  const int needed = limits_.is_to_write ? 1 : limits_.least;
  if (members.empty() || static_cast<int>(members.size()) < needed) {
    epochs_.quorum_since = absl::InfiniteFuture();
    return false;
  }
  epochs_.quorum_since = std::min(epochs_.quorum_since, now);
  return true;
}

bool NextMembers::AwaitsStarting(const Asking& asking, size_t members, absl::Time now) const {
  const bool has_survivors = !asking.staying.empty() || !asking.leaving.empty();
  const bool is_full = static_cast<int>(members) >= limits_.most;
  return !has_survivors && asking.others_start && !is_full &&
         now < epochs_.quorum_since + kFormPatience;
}

}  // namespace hvd::rendezvous::membership::decisions
