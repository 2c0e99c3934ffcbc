// The assignment of a static job's ranks to the slots of hosts.
#ifndef RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_
#define RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_

#include <vector>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

// The order of ranks when several hosts are on one machine.
enum class RankOrder {
  kByMachine,  // a machine's ranks are adjacent; machines are ordered by their first host
  kByHost,     // in the order of the hosts, whatever their machines
};

struct PlacedSlot {
  int host = 0;  // index into the hosts given
  int slot = 0;  // on that host
  Placement place;
};

// Assigns ranks to the slots of the hosts in this order, up to `max_workers` ranks. Returns the
// slots in rank order. The ranks of a host are adjacent, and local ranks ascend with ranks. A host
// with zero or a negative number of slots gets no worker.
std::vector<PlacedSlot> AssignStaticRanks(const std::vector<HostSlots>& hosts, int max_workers,
                                          RankOrder rank_order = RankOrder::kByMachine);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_
