// The in-process backend, whose ranks are threads: the executable specification of Communicator,
// and the fake for tests.
#ifndef COLLECTIVES_INPROC_INPROC_BACKEND_H_
#define COLLECTIVES_INPROC_INPROC_BACKEND_H_

#include <memory>

#include "collectives/mesh.h"

namespace hvd::collectives::inproc {

// All ranks of a group must connect through the same backend object. Groups are distinguished by
// their epoch, and a backend serves an epoch once. Addresses and the key exchange are not used.
// Not optimised: it copies data several times.
std::unique_ptr<MeshBackend> MakeInprocBackend();

}  // namespace hvd::collectives::inproc

#endif  // COLLECTIVES_INPROC_INPROC_BACKEND_H_
