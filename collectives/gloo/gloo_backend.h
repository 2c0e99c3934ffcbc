// The backend for collectives over TCP, by Gloo's transport.
#ifndef COLLECTIVES_GLOO_GLOO_BACKEND_H_
#define COLLECTIVES_GLOO_GLOO_BACKEND_H_

#include <memory>

#include "collectives/mesh.h"

namespace hvd::collectives::gloo {

// Up to this many ranks of a group are all linked with each other, which is fastest. In a larger
// group a rank is linked with 2 log2(size) others or a few less, at their first operation together.
// Exceptions: AllToAll needs all ranks, SendReceive its peer. The same holds for every subset of
// the group.
inline constexpr int kMostDirectRanks = 16;

// Every rank listens at one TCP port of the system's choice on the group's address, as long as the
// communicator lives. Connections are encrypted only with a group.tls. Both ends prove that they
// know the group's secret before a connection is used; connections of strangers have no effect.
// Each communicator has three threads, which sleep while nothing happens. A group of one opens
// nothing.
//
// Errors of Connect: those of Backend, and
//   - InvalidArgument: group.address is not a numeric address of this machine.
std::unique_ptr<MeshBackend> MakeGlooBackend();

// With another limit than kMostDirectRanks: for tests.
std::unique_ptr<MeshBackend> MakeSparseGlooBackend(int most_direct);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_BACKEND_H_
