// The assignment of a static job's ranks to the slots of hosts.
#ifndef RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_
#define RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_

#include <vector>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

struct PlacedSlot {
  int host = 0;  // index into the hosts given
  int slot = 0;  // on that host
  Placement place;
};

// Fills the machines in the order of their first hosts, the hosts of a machine in the order given,
// and stops after `max_workers` slots; the result is in rank order. Ranks run through the hosts, so
// the ranks of one host are neighbours, and those of one machine. A host with no (or a negative
// number of) slots gets no worker.
std::vector<PlacedSlot> AssignStaticRanks(const std::vector<HostSlots>& hosts, int max_workers);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_STATIC_RANKS_H_
