// Collectives over TCP, by Gloo's transport.
#ifndef COLLECTIVES_GLOO_GLOO_BACKEND_H_
#define COLLECTIVES_GLOO_GLOO_BACKEND_H_

#include <memory>

#include "collectives/mesh.h"

namespace hvd {

// Every pair of ranks has one TCP connection between the group's addresses, on ports of the
// system's choice. They are not encrypted; that both ends know the group's secret is proved before
// they are used. Each communicator has two threads of its own, which sleep while nothing happens. A
// group of one opens nothing.
//
// Beside the errors that Backend lists: InvalidArgument, if group.address is not a numeric address
// of this machine.
std::unique_ptr<MeshBackend> MakeGlooBackend();

}  // namespace hvd

#endif  // COLLECTIVES_GLOO_GLOO_BACKEND_H_
