// The communicator whose ranks are all connected with each other, so that some of them can work
// together without the rest. Composed backends are built on it.
#ifndef COLLECTIVES_MESH_H_
#define COLLECTIVES_MESH_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/backend.h"
#include "collectives/communicator.h"

namespace hvd::collectives {

// Thread-safety and errors as in Communicator.
class MeshCommunicator : public Communicator {
 public:
  // A communicator among some of the ranks, over the same connections: rank i there is ranks[i]
  // here. It belongs to the same thread. Operations of two ranks in it and here must come in the
  // same order on both. If either breaks, both do; errors name ranks by their numbers here. It may
  // outlive this. REQUIRES: at least two different ranks, among them this one.
  virtual std::unique_ptr<Communicator> Subset(const std::vector<int>& ranks) = 0;

  // Calls `listener` with the reason when the communicator has become unusable, on the thread that
  // notices; at once if it is unusable already. Within moments all ranks' listeners are called. It
  // must not block, nor call this object. It is not called after this and its subsets are
  // destroyed. Call it once.
  virtual void OnBroken(std::function<void(const absl::Status&)> listener) = 0;
};

// Thread-safety as in Backend.
class MeshBackend : public Backend {
 public:
  // As Connect(). REQUIRES: group.size > 1.
  virtual absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(
      const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_MESH_H_
