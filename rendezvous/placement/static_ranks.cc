#include "rendezvous/placement/static_ranks.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "rendezvous/placement/machines.h"

namespace hvd::rendezvous::placement {
namespace {

std::vector<int> Machines(const std::vector<HostSlots>& hosts) {
  std::vector<const HostSlots*> pointers;
  for (const HostSlots& host : hosts) pointers.push_back(&host);
  return MachinesOf(pointers);
}

// The indices of the hosts in the order in which they get ranks.
std::vector<int> InOrder(const std::vector<int>& machines, RankOrder rank_order) {
  std::vector<int> order(machines.size());
  std::iota(order.begin(), order.end(), 0);
  if (rank_order == RankOrder::kByHost) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&machines](int a, int b) { return machines[a] < machines[b]; });
  return order;
}

}  // namespace

std::vector<PlacedSlot> AssignStaticRanks(const std::vector<HostSlots>& hosts, int max_workers,
                                          RankOrder rank_order) {
  const std::vector<int> machines = Machines(hosts);
  std::vector<PlacedSlot> plan;
  std::vector<int> local_sizes(hosts.size());  // by machine
  std::vector<int> machines_with_local_rank;   // by local rank
  for (const int host : InOrder(machines, rank_order)) {
    const int left = max_workers - static_cast<int>(plan.size());
    for (int slot = 0; slot < std::min(hosts[host].slots, left); ++slot) {
      Placement place;
      place.rank = static_cast<int>(plan.size());
      place.local_rank = local_sizes[machines[host]]++;
      if (place.local_rank == static_cast<int>(machines_with_local_rank.size())) {
        machines_with_local_rank.push_back(0);
      }
      place.cross_rank = machines_with_local_rank[place.local_rank]++;
      plan.push_back({host, slot, place});
    }
  }
  // Sizes are known only after all ranks are assigned.
  for (auto& [host, slot, place] : plan) {
    place.size = static_cast<int>(plan.size());
    place.local_size = local_sizes[machines[host]];
    place.cross_size = machines_with_local_rank[place.local_rank];
  }
  return plan;
}

}  // namespace hvd::rendezvous::placement
