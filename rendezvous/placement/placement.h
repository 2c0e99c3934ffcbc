// The placement of a worker in a world: its ranks and the sizes they count to. The slots of a host,
// and the machine that it is on.
#ifndef RENDEZVOUS_PLACEMENT_PLACEMENT_H_
#define RENDEZVOUS_PLACEMENT_PLACEMENT_H_

#include <string>

namespace hvd::rendezvous::placement {

// By default that of a single worker. The message is in proto/placement.proto.
struct Placement {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of its machine
  int local_size = 1;
  int cross_rank = 0;  // among the machines that have this local rank, in the order of their ranks
  int cross_size = 1;
};

// A host as placement sees it.
struct HostSlots {
  std::string host;  // as the user wrote it
  int slots = 0;
  std::string machine = {};  // empty: the host's own name; see machines.h
};

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_PLACEMENT_H_
