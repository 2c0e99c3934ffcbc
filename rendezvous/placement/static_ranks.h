// The assignment of a static job's ranks to the slots of hosts.
#ifndef RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_
#define RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_

#include <vector>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

// How ranks go through hosts of which several are on one machine.
enum class RankOrder {
  kByMachine,  // the ranks of a machine are neighbours: machines in the order of their first hosts
  kByHost,     // in the order of the hosts, wherever these are
};

struct PlacedSlot {
  int host = 0;  // index into the hosts given
  int slot = 0;  // on that host
  Placement place;
};

// Fills the hosts in that order, and stops after `max_workers` slots; the result is in rank order.
// The ranks of one host are neighbours. Local ranks follow the ranks. A host with no (or a negative
// number of) slots gets no worker.
std::vector<PlacedSlot> AssignStaticRanks(const std::vector<HostSlots>& hosts, int max_workers,
                                          RankOrder rank_order = RankOrder::kByMachine);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_
