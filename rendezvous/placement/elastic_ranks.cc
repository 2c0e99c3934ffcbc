#include "rendezvous/placement/elastic_ranks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace hvd::rendezvous::placement {
namespace {

constexpr int kNoRank = 1 << 30;  // sorts after every rank

int RankOrLast(const Candidate& candidate) {
  const bool counts = candidate.previous_rank >= 0 && !candidate.starts_anew;
  return counts ? candidate.previous_rank : kNoRank;
}

// Returns the indices of the candidates that take part.
std::vector<size_t> Choose(const std::vector<Candidate>& candidates, int max_workers) {
  std::vector<size_t> chosen(candidates.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  std::stable_partition(chosen.begin(), chosen.end(), [&candidates](size_t index) {
    return candidates[index].previous_rank >= 0;
  });
  if (static_cast<int>(chosen.size()) <= max_workers) return chosen;
  // If the limit excludes the candidate with the newest commit, it replaces the last one: a world
  // always continues from the newest commit.
  const auto newest = std::max_element(
      chosen.begin(), chosen.end(),
      [&candidates](size_t a, size_t b) { return candidates[a].commit < candidates[b].commit; });
  const auto last = chosen.begin() + max_workers - 1;
  if (newest > last) std::iter_swap(newest, last);
  chosen.resize(max_workers);
  return chosen;
}

// Sets local ranks, by the order of the slots on each machine.
void SetLocalRanks(const std::vector<Candidate>& candidates, std::vector<PlannedMember>* members) {
  std::map<int, std::vector<PlannedMember*>> by_machine;
  for (PlannedMember& member : *members)
    by_machine[candidates[member.candidate].machine].push_back(&member);
  for (auto& [machine, members_there] : by_machine) {
    std::sort(members_there.begin(), members_there.end(), [&](PlannedMember* a, PlannedMember* b) {
      return candidates[a->candidate].slot < candidates[b->candidate].slot;
    });
    for (size_t local_rank = 0; local_rank < members_there.size(); ++local_rank) {
      members_there[local_rank]->place.local_rank = static_cast<int>(local_rank);
      members_there[local_rank]->place.local_size = static_cast<int>(members_there.size());
    }
  }
}

// Sets cross ranks: for each local rank, the machines that have it are numbered in the order of
// their ranks. Members of a machine are adjacent, so one pass over the machines is enough: `before`
// is a copy, per machine, of the counts of earlier machines for each local rank.
void SetCrossRanks(const std::vector<Candidate>& candidates, std::vector<PlannedMember>* members) {
  std::vector<int> machines_with;  // by local rank: number of machines so far
  int machine = -1;
  std::map<int, std::vector<int>> before;  // by machine and local rank: number of earlier machines
  for (const PlannedMember& member : *members) {
    if (machine == candidates[member.candidate].machine) continue;
    machine = candidates[member.candidate].machine;
    const auto local_size = static_cast<size_t>(member.place.local_size);
    if (machines_with.size() < local_size) machines_with.resize(local_size);
    before[machine].assign(machines_with.begin(), machines_with.begin() + member.place.local_size);
    for (size_t local_rank = 0; local_rank < local_size; ++local_rank) ++machines_with[local_rank];
  }
  for (PlannedMember& member : *members) {
    member.place.cross_rank = before[candidates[member.candidate].machine][member.place.local_rank];
    member.place.cross_size = machines_with[member.place.local_rank];
  }
}

}  // namespace

std::vector<PlannedMember> AssignElasticRanks(const std::vector<Candidate>& candidates,
                                              int max_workers) {
  std::vector<size_t> order = Choose(candidates, max_workers);
  if (order.empty()) return {};
  // The leader has the newest commit; ties are broken by the previous rank, then by the place.
  // Sorting by these keys gives the order that the header describes.
  const size_t leader =
      *std::min_element(order.begin(), order.end(), [&candidates](size_t a, size_t b) {
        const auto key = [](const Candidate& c) {
          return std::make_tuple(UINT64_MAX - c.commit, RankOrLast(c), c.machine, c.slot);
        };
        return key(candidates[a]) < key(candidates[b]);
      });
  std::map<int, int>
      lowest_ranks;  // by machine: the lowest previous rank there, -1 for the leader's
  for (const size_t index : order) {
    const int rank = index == leader ? -1 : RankOrLast(candidates[index]);
    const auto [lowest, is_new] = lowest_ranks.try_emplace(candidates[index].machine, rank);
    if (!is_new) lowest->second = std::min(lowest->second, rank);
  }
  using Key = std::tuple<int, int, int, int64_t>;
  std::vector<std::pair<Key, size_t>> keyed;
  for (const size_t index : order) {
    const Candidate& c = candidates[index];
    const int rank = index == leader ? -1 : RankOrLast(c);
    keyed.push_back({Key(lowest_ranks[c.machine], c.machine, rank, c.slot), index});
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<PlannedMember> members;
  for (const auto& [key, index] : keyed) {
    PlannedMember member;
    member.candidate = index;
    member.place.rank = static_cast<int>(members.size());
    member.place.size = static_cast<int>(order.size());
    members.push_back(member);
  }
  SetLocalRanks(candidates, &members);
  SetCrossRanks(candidates, &members);
  return members;
}

}  // namespace hvd::rendezvous::placement
