#include "rendezvous/placement/static_ranks.h"

#include <algorithm>
#include <cstddef>

namespace hvd::rendezvous::placement {

std::vector<PlacedSlot> AssignStaticRanks(const std::vector<HostSlots>& hosts, int max_workers) {
  std::vector<PlacedSlot> plan;
  std::vector<int> hosts_with_local_rank;  // by local rank
  for (size_t host = 0; host < hosts.size(); ++host) {
    const int left = max_workers - static_cast<int>(plan.size());
    const int local_size = std::min(hosts[host].slots, left);
    for (int local_rank = 0; local_rank < local_size; ++local_rank) {
      if (local_rank == static_cast<int>(hosts_with_local_rank.size())) {
        hosts_with_local_rank.push_back(0);
      }
      Placement place;
      place.rank = static_cast<int>(plan.size());
      place.local_rank = local_rank;
      place.local_size = local_size;
      place.cross_rank = hosts_with_local_rank[local_rank]++;
      plan.push_back({static_cast<int>(host), place});
    }
  }
  for (auto& [host, place] : plan) {
    place.size = static_cast<int>(plan.size());
    place.cross_size = hosts_with_local_rank[place.local_rank];
  }
  return plan;
}

}  // namespace hvd::rendezvous::placement
