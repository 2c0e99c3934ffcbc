// The environment variables for a worker's placement that torch.distributed reads and torchrun
// sets: RANK, WORLD_SIZE, and so on.
#ifndef RENDEZVOUS_PLACEMENT_TORCH_VARIABLES_H_
#define RENDEZVOUS_PLACEMENT_TORCH_VARIABLES_H_

#include <map>
#include <string>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

// The data for torch.distributed beside the placement. Its groups are the machines.
struct TorchGroup {
  std::string store_address;  // "address:port" on rank 0's host, reserved there; empty: none
  int group_rank = 0;         // of the worker's machine, in the order of ranks
  int groups = 0;             // 0: not known, as in elastic jobs
};

// The values by name, without those of the store; empty if the groups are not known.
std::map<std::string, std::string> TorchVariables(const Placement& place, const TorchGroup& group);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_TORCH_VARIABLES_H_
