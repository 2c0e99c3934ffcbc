// Collectives over TCP, by Gloo's transport.
#ifndef COLLECTIVES_GLOO_GLOO_BACKEND_H_
#define COLLECTIVES_GLOO_GLOO_BACKEND_H_

#include <memory>

#include "collectives/mesh.h"

namespace hvd::collectives::gloo {

// Up to so many ranks of a group are all linked with each other, which is quickest; in larger ones
// a rank is linked with 2 log2(size) others, or a few less, when they first do something together:
// all but AllToAll, which needs everyone, and SendReceive, which needs its peer. It is so for every
// subset of the group as well.
inline constexpr int kMostDirectRanks = 16;

// Every rank listens at one TCP port of the system's choice on the group's address, as long as the
// communicator lives. Connections are not encrypted; that both ends know the group's secret is
// proved before they are used, and strangers come and go without anybody's notice. Each
// communicator has three threads of its own, which sleep while nothing happens. A group of one
// opens nothing.
//
// Beside the errors that Backend lists: InvalidArgument, if group.address is not a numeric address
// of this machine.
std::unique_ptr<MeshBackend> MakeGlooBackend();

// With another limit than kMostDirectRanks: for tests.
std::unique_ptr<MeshBackend> MakeSparseGlooBackend(int most_direct);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_BACKEND_H_
