// The placement of a worker in a world, and the slots and machine of a host.
#ifndef RENDEZVOUS_PLACEMENT_PLACEMENT_H_
#define RENDEZVOUS_PLACEMENT_PLACEMENT_H_

#include <string>

namespace hvd::rendezvous::placement {

// The ranks of a worker and the sizes of the groups that they count in. Defaults to a world of one
// worker. The message is in proto/placement.proto.
struct Placement {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of its machine
  int local_size = 1;
  int cross_rank = 0;  // among the workers with this local rank, one per machine
  int cross_size = 1;
};

// A host, as an input of the placement.
struct HostSlots {
  std::string host;  // as the user wrote it
  int slots = 0;
  std::string machine = {};  // empty: the host's own name; see machines.h
};

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_PLACEMENT_H_
