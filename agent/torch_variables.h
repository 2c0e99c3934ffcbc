// The environment variables of a worker by which torch.distributed finds its peers: those of
// torchrun.
#ifndef AGENT_TORCH_VARIABLES_H_
#define AGENT_TORCH_VARIABLES_H_

#include <map>
#include <string>

#include "proto/agent.pb.h"

namespace hvd::agent {

// Sets RANK, WORLD_SIZE, LOCAL_RANK, and so on, for a worker of a static job. MASTER_ADDR and
// MASTER_PORT stay if the job has them already. Sets nothing in an elastic job, whose workers ask
// for each world's anew.
void SetTorchVariables(const pb::StartWorker& start,
                       std::map<std::string, std::string>* environment);

}  // namespace hvd::agent

#endif  // AGENT_TORCH_VARIABLES_H_
