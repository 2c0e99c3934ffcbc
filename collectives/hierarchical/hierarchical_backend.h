// Shared memory, or whatever else is quick, in a host; a mesh across hosts. Made of two other
// backends, of which it takes what suits a group.
#ifndef COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_
#define COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_

#include <memory>
#include <string>

#include "collectives/mesh.h"

namespace hvd::collectives::hierarchical {

// Which operations go by hosts where a group has several hosts with several ranks. Those that are
// switched off go over the mesh as if every rank were a host. One rank's "no" counts for all.
struct HierarchyOptions {
  bool allreduce = true;
  bool allgather = true;
};

// Ranks that show the same `host_identity` are tried to be connected by `local`; empty: this rank
// shares nothing. A group gets
// - what `local` gives, if all of its ranks share a host;
// - what `across` gives, if no two do, or if `local` says Unimplemented on any rank (if on one of
//   a host, then on all of that host), as it does where ranks of one identity can't reach the
//   first of them;
// - both, composed, otherwise.
//
// `local` may exchange keys once per Connect(). In a composed communicator `local` never sees a
// rank that `across` has not let in. Beside the errors that Backend lists: those of `across`.
std::unique_ptr<Backend> MakeHierarchicalBackend(std::string host_identity,
                                                 const HierarchyOptions& options,
                                                 std::unique_ptr<Backend> local,
                                                 std::unique_ptr<MeshBackend> across);

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HIERARCHICAL_BACKEND_H_
