// The variables of a command that is started again in each world: those of torchrun, and Horovod's.
#ifndef AGENT_RESTARTER_RANK_VARIABLES_H_
#define AGENT_RESTARTER_RANK_VARIABLES_H_

#include <string>
#include <vector>

#include "base/env.h"
#include "rendezvous/placement/placement.h"

namespace hvd::agent::restarter {

// What the variables say of a world.
struct RankInWorld {
  std::string job;
  uint64_t epoch = 0;                                    // the world's number, from 1
  std::vector<rendezvous::placement::Placement> places;  // of all ranks, in their order
  int rank = 0;
  std::string store_address;  // of torch.distributed's store, at rank 0: numeric
  int store_port = 0;
};

// Returns the environment of the rank's command. `own` is that of a worker; what makes a process a
// worker is left out, because the command is none. REQUIRES: the ranks of a machine are
// consecutive.
Environment RankVariables(const Environment& own, const RankInWorld& world);

}  // namespace hvd::agent::restarter

#endif  // AGENT_RESTARTER_RANK_VARIABLES_H_
