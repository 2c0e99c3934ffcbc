// Ranks as threads of one process: the readable specification of Communicator, and the double for
// tests.
#ifndef COLLECTIVES_INPROC_INPROC_BACKEND_H_
#define COLLECTIVES_INPROC_INPROC_BACKEND_H_

#include <memory>

#include "collectives/mesh.h"

namespace hvd::collectives::inproc {

// All ranks of a group must connect through the same backend object; groups are told apart by their
// epoch, and a backend serves an epoch once. Addresses and the key exchange are not used. Data is
// copied more often than is good for anyone in a hurry.
std::unique_ptr<MeshBackend> MakeInprocBackend();

}  // namespace hvd::collectives::inproc

#endif  // COLLECTIVES_INPROC_INPROC_BACKEND_H_
