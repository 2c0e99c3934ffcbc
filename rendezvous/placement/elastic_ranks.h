// The assignment of ranks to the members of an elastic job's next world, the first included.
#ifndef RENDEZVOUS_PLACEMENT_ELASTIC_RANKS_H_
#define RENDEZVOUS_PLACEMENT_ELASTIC_RANKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

// A possible member of the next world.
struct Candidate {
  int machine = 0;         // see MachinesOf
  int64_t slot = 0;        // on that machine; no two candidates share one
  int previous_rank = -1;  // in the world before; -1: it was not in that
  uint64_t commit = 0;     // the newest that it can restore
};

struct PlannedMember {
  size_t candidate = 0;  // index into the candidates
  Placement place;
};

// The members in rank order, at most `max_workers`: those of the world before are chosen first,
// then the others in the candidates' order.
// - The leader, rank 0, holds the newest commit; of several such, the one with the lowest previous
//   rank.
// - The members of a machine have neighbouring ranks: the leader's machine first, then machines by
//   the lowest previous rank there, then machines without one by index.
// - On a machine, members of the world before keep their order (the leader apart), newcomers
//   follow.
// - Local ranks follow the slots, not the ranks: a newcomer in a dead worker's slot takes its local
//   rank, and with it its device, while the survivors keep theirs.
// Workers that are not ready yet get provisional places in the same way.
std::vector<PlannedMember> AssignElasticRanks(const std::vector<Candidate>& candidates,
                                              int max_workers);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_ELASTIC_RANKS_H_
