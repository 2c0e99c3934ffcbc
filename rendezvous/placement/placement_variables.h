// The environment variables for a worker's placement: HOROVOD_RANK, HOROVOD_SIZE, and so on.
#ifndef RENDEZVOUS_PLACEMENT_PLACEMENT_VARIABLES_H_
#define RENDEZVOUS_PLACEMENT_PLACEMENT_VARIABLES_H_

#include <map>
#include <string>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

// The values by name.
std::map<std::string, std::string> PlacementVariables(const Placement& place);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_PLACEMENT_VARIABLES_H_
