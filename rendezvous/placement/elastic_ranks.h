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
  int machine = 0;           // see MachinesOf
  int64_t slot = 0;          // on that machine; no two candidates share one
  int previous_rank = -1;    // in the previous world; -1: it was not a member
  uint64_t commit = 0;       // the newest commit that it can restore
  bool starts_anew = false;  // it has no state to pass on
};

struct PlannedMember {
  size_t candidate = 0;  // index into the candidates
  Placement place;
};

// Returns the members in rank order, at most `max_workers`. Members of the previous world are
// chosen first, then the others in the order of the candidates.
// - Rank 0, the leader, is the candidate with the newest commit; among equals, the one with the
//   lowest previous rank.
// - The members of a machine have adjacent ranks. The leader's machine comes first, then the
//   machines by their lowest previous rank, then those without one by index.
// - On a machine, members of the previous world keep their order, except for the leader; newcomers
//   follow.
// - Local ranks follow the slots, not the ranks: a newcomer in a dead worker's slot gets that
//   worker's local rank, and so its device; survivors keep theirs.
// - Candidates that start anew are placed as newcomers. If all do, ranks follow machines and slots:
//   a rank is that of its machine's first member plus the local rank, and machines keep their
//   order from world to world.
// Also used to compute provisional placements for workers that are not ready yet.
std::vector<PlannedMember> AssignElasticRanks(const std::vector<Candidate>& candidates,
                                              int max_workers);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_ELASTIC_RANKS_H_
