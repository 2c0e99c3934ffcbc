// The communicator of a group of one rank, whose operations are local copies.
#ifndef COLLECTIVES_GLOO_SOLO_COMMUNICATOR_H_
#define COLLECTIVES_GLOO_SOLO_COMMUNICATOR_H_

#include <memory>

#include "collectives/communicator.h"

namespace hvd::collectives::gloo {

// REQUIRES: group.size == 1.
std::unique_ptr<Communicator> MakeSoloCommunicator(const GroupInfo& group);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_SOLO_COMMUNICATOR_H_
