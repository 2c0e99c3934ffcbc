// The mesh interface: a communicator that can be split into subsets of its ranks. Composed backends
// are built on it.
#ifndef COLLECTIVES_MESH_H_
#define COLLECTIVES_MESH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/backend.h"
#include "collectives/block.h"
#include "collectives/communicator.h"

namespace hvd::collectives {

// Thread-safety and errors as in Communicator.
class MeshCommunicator : public Communicator {
 public:
  // A communicator of some of the ranks, over the same connections: its rank i is ranks[i] of this
  // communicator. It belongs to the same thread. Any two ranks must call the operations of both
  // communicators in the same order. If one of the two breaks, so does the other. Errors of the
  // subset name ranks by their numbers in this communicator. The subset may outlive this object.
  // REQUIRES: at least two different ranks, among them this one.
  virtual std::unique_ptr<Communicator> Subset(const std::vector<int>& ranks) = 0;

  // AllToAll of blocks at any places: sends send[r] of `in` to each other rank r and receives
  // receive[r] of `out` from it; this rank's own blocks are empty.
  virtual absl::Status ExchangeBlocks(const void* in, const std::vector<Block>& send, void* out,
                                      const std::vector<Block>& receive,
                                      const CallOptions& options) = 0;

  // Calls `listener` with the reason when the communicator has become unusable, on the thread that
  // notices it; at once if it is unusable already. A failure reaches the listeners of all ranks
  // soon. `listener` must not block or call this object, and is not called after this object and
  // its subsets are destroyed. At most one listener can be set.
  virtual void OnBroken(std::function<void(const absl::Status&)> listener) = 0;

  // From now on raises `counter` while an operation moves data, also one of a subset; see
  // Communicator::moves_elsewhere(). It must outlive this object and its subsets. By default, a
  // mesh moves all data at once.
  virtual void CountMoves(std::atomic<uint64_t>* counter) {}
};

// Thread-safety as in Backend.
class MeshBackend : public Backend {
 public:
  // As Connect().
  // REQUIRES: group.size > 1.
  virtual absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(
      const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_MESH_H_
