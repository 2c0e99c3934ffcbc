// The hierarchical backend: composes a fast backend within each host, such as shared memory, with a
// mesh across hosts.
#ifndef COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_
#define COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_

#include <memory>
#include <string>

#include "collectives/mesh.h"

namespace hvd::collectives::hierarchical {

// Which operations use the hierarchy in a group of several hosts with several ranks each. An
// operation that is switched off runs on the mesh of all ranks. If one rank switches an operation
// off, it is off on all ranks.
struct HierarchyOptions {
  bool allreduce = true;
  bool allgather = true;
};

// Ranks with the same `host_identity` are connected by `local` if possible; empty: this rank shares
// a host with no other one. A group gets one of:
//   - the communicator of `local`, if all of its ranks share a host.
//   - the communicator of `across`, if no two ranks share a host, or if `local` returns
//     Unimplemented on any rank. `local` has to return it on all ranks of a host or on none, as it
//     does where ranks of one identity can't reach the first of them.
//   - both, composed, otherwise.
//
// `local` may exchange keys once per Connect(). In a composed communicator `local` connects only
// ranks that `across` has accepted.
// Errors of Connect: those of Backend and of `across`.
std::unique_ptr<Backend> MakeHierarchicalBackend(std::string host_identity,
                                                 const HierarchyOptions& options,
                                                 std::unique_ptr<Backend> local,
                                                 std::unique_ptr<MeshBackend> across);

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_
