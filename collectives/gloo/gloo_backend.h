// The backend for collectives over Gloo's TCP transport.
#ifndef COLLECTIVES_GLOO_GLOO_BACKEND_H_
#define COLLECTIVES_GLOO_GLOO_BACKEND_H_

#include <memory>

#include "collectives/mesh.h"

namespace hvd::collectives::gloo {

// Beside the TCP backend, which is the default: for whoever wants Gloo itself, and as a reference
// for tests and the benchmark. Of Gloo only public classes are used, so its limits apply:
//   - Connections are neither authenticated nor encrypted. The ranks prove to one another that they
//     know the group's secret only through the key exchange.
//   - All ranks are linked from the start, and connecting can't be cancelled, only timed out.
//   - A connection that a peer resets while Gloo's own thread writes to it ends the process: Gloo
//     throws an exception there, which nothing can catch.
//
// Errors of Connect: those of Backend, and
//   - InvalidArgument: group.address is not a numeric address of this machine, or group.tls is set.
std::unique_ptr<MeshBackend> MakeGlooBackend();

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_BACKEND_H_
