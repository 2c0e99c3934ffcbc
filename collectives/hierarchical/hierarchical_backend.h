// The hierarchical backend: shared memory, or another fast backend, within a host; a mesh across
// hosts. Made of two other backends; selects what fits a group.
#ifndef COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_
#define COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_

#include <memory>
#include <string>

#include "collectives/mesh.h"

namespace hvd::collectives::hierarchical {

// The operations that are done host by host where a group has several hosts with several ranks. An
// operation that is switched off uses the mesh as if every rank were a host. If one rank switches
// it off, it is off for all.
struct HierarchyOptions {
  bool allreduce = true;
  bool allgather = true;
};

// Ranks with the same `host_identity` are connected by `local` if possible; empty: this rank shares
// nothing. A group gets
// - the result of `local`, if all of its ranks share a host;
// - the result of `across`, if no two do, or if `local` returns Unimplemented on any rank (if on
//   one of a host, then on all of that host), as it does where ranks of one identity can't reach
//   the first of them;
// - both, composed, otherwise.
//
// `local` may exchange keys once per Connect(). In a composed communicator `local` never sees a
// rank that `across` has not accepted.
// Errors of Connect: those of Backend and of `across`.
std::unique_ptr<Backend> MakeHierarchicalBackend(std::string host_identity,
                                                 const HierarchyOptions& options,
                                                 std::unique_ptr<Backend> local,
                                                 std::unique_ptr<MeshBackend> across);

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_
