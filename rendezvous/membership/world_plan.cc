#include "rendezvous/membership/world_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace hvd {
namespace {

constexpr int kNoRank = 1 << 30;  // sorts after every rank

int RankOrLast(const Candidate& candidate) {
  return candidate.previous_rank >= 0 ? candidate.previous_rank : kNoRank;
}

// Indices of those that take part.
std::vector<size_t> Choose(const std::vector<Candidate>& candidates, int max_workers) {
  std::vector<size_t> chosen(candidates.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  std::stable_partition(chosen.begin(), chosen.end(), [&candidates](size_t index) {
    return candidates[index].previous_rank >= 0;
  });
  if (static_cast<int>(chosen.size()) > max_workers) chosen.resize(max_workers);
  return chosen;
}

void SetLocalRanks(const std::vector<Candidate>& candidates, std::vector<PlannedMember>* members) {
  std::map<int, std::vector<PlannedMember*>> by_host;
  for (PlannedMember& member : *members) by_host[member.place.host].push_back(&member);
  for (auto& [host, on_host] : by_host) {
    std::sort(on_host.begin(), on_host.end(), [&](PlannedMember* a, PlannedMember* b) {
      return candidates[a->candidate].slot < candidates[b->candidate].slot;
    });
    for (size_t local_rank = 0; local_rank < on_host.size(); ++local_rank) {
      on_host[local_rank]->place.local_rank = static_cast<int>(local_rank);
      on_host[local_rank]->place.local_size = static_cast<int>(on_host.size());
    }
  }
}

// Cross ranks number the hosts that have this local rank, in the order of the hosts' ranks.
void SetCrossRanks(std::vector<PlannedMember>* members) {
  std::vector<int> host_order;
  for (const PlannedMember& member : *members) {
    if (host_order.empty() || host_order.back() != member.place.host) {
      host_order.push_back(member.place.host);
    }
  }
  std::map<int, int> local_sizes;  // by host
  for (const PlannedMember& member : *members) {
    local_sizes[member.place.host] = member.place.local_size;
  }
  for (PlannedMember& member : *members) {
    bool seen = false;
    for (const int host : host_order) {
      seen = seen || host == member.place.host;
      if (local_sizes[host] <= member.place.local_rank) continue;
      ++member.place.cross_size;
      if (!seen) ++member.place.cross_rank;
    }
  }
}

}  // namespace

std::vector<PlannedMember> PlanWorld(const std::vector<Candidate>& candidates, int max_workers) {
  std::vector<size_t> order = Choose(candidates, max_workers);
  if (order.empty()) return {};
  const size_t leader =
      *std::min_element(order.begin(), order.end(), [&candidates](size_t a, size_t b) {
        const auto key = [](const Candidate& c) {
          return std::make_tuple(UINT64_MAX - c.commit, RankOrLast(c), c.host, c.slot);
        };
        return key(candidates[a]) < key(candidates[b]);
      });
  std::map<int, int> host_ranks;  // by host: the lowest previous rank there, -1 for the leader's
  for (const size_t index : order) {
    const int rank = index == leader ? -1 : RankOrLast(candidates[index]);
    const auto [host, is_new] = host_ranks.try_emplace(candidates[index].host, rank);
    if (!is_new) host->second = std::min(host->second, rank);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t index) {
      const Candidate& c = candidates[index];
      return std::make_tuple(host_ranks[c.host], c.host, index == leader ? -1 : RankOrLast(c),
                             c.slot);
    };
    return key(a) < key(b);
  });
  std::vector<PlannedMember> members;
  for (const size_t index : order) {
    PlannedMember member;
    member.candidate = index;
    member.place.host = candidates[index].host;
    member.place.rank = static_cast<int>(members.size());
    member.place.size = static_cast<int>(order.size());
    members.push_back(member);
  }
  SetLocalRanks(candidates, &members);
  SetCrossRanks(&members);
  return members;
}

}  // namespace hvd
