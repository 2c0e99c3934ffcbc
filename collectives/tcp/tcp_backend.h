// The backend for collectives over TCP, with or without TLS.
#ifndef COLLECTIVES_TCP_TCP_BACKEND_H_
#define COLLECTIVES_TCP_TCP_BACKEND_H_

#include <memory>

#include "collectives/mesh.h"
#include "collectives/tcp/connection_count.h"

namespace hvd::collectives::tcp {

// Every rank accepts connections at group.port, or else at one of its own, as long as the
// communicator lives. Connections are encrypted only if group.tls is set. Both ends prove that they
// know the group's secret before a connection is used; connections of strangers have no effect. A
// port has one thread, which accepts connections and waits for hang-ups. A group of one rank opens
// no socket and starts no thread.
//
// Groups of up to links::kMostDirectRanks are fully linked when they connect, which is fastest. In
// a larger group a rank is linked with at most 2 log2(size) others, when an algorithm first needs
// them; besides, AllToAll links all ranks, and SendReceive links its peer. Subsets of the group
// follow the same rule.
//
// Errors of Connect: those of Backend, and
//   - InvalidArgument: group.address is not a numeric address of this machine.
std::unique_ptr<MeshBackend> MakeTcpBackend();

// As MakeTcpBackend, with `most_direct` in place of links::kMostDirectRanks, and another rule for
// splitting. For tests.
std::unique_ptr<MeshBackend> MakeSparseTcpBackend(int most_direct, const SplitRule& rule = {});

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_TCP_BACKEND_H_
