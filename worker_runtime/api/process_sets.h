// The registry of one world's process sets, other than the set of all ranks.
#ifndef WORKER_RUNTIME_API_PROCESS_SETS_H_
#define WORKER_RUNTIME_API_PROCESS_SETS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/cancellation.h"
#include "collectives/backend.h"
#include "collectives/peer/peer_port.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/engine/request.h"
#include "worker_runtime/group/connected_group.h"
#include "worker_runtime/session/world.h"

namespace hvd::worker_runtime::api {

// Each set has its own engine on its members, so operations of different sets don't wait for each
// other, and tensor names need to be unique within a set only. Sets are added and removed by
// collectives of the world's engine in which all ranks take part; the daemon is not involved.
//
// If the world breaks, so do its sets, and vice versa: on_broken receives the failure of a set, and
// its owner then breaks the world and calls Abort. Thread-safe.
class ProcessSets {
 public:
  // The dependencies on the world. Borrowed ones must outlive this object.
  struct Dependencies {
    const session::WorkerWorld& world;
    group::ConnectedGroup& group;  // the world's; started before the first Add
    collectives::Backend& backend;
    std::shared_ptr<collectives::DeviceBackend> devices;  // see group::ConnectedGroup::Start
    engine::EngineOptions options;  // for the sets' engines; some fields are set for each set
    std::shared_ptr<const net::TlsContext> tls;  // see GroupInfo
    WaitBounds bounds;                           // for connecting
    // Called when a set's engine has failed, on that engine's thread; must not block.
    std::function<void(const absl::Status&, std::optional<int> unreached)> on_broken;
  };

  // `port`: the world's, at which its peers connect; nullptr: it needs none, so each set opens one.
  ProcessSets(Dependencies dependencies, std::shared_ptr<collectives::peer::PeerPort> port);
  ~ProcessSets() { Close(); }

  // Adds a set. Every rank of the world must call it, with the same ranks in any order. Blocks
  // until the members are connected. The new set's *id is the same on all ranks and is never
  // reused. After InvalidArgument, AlreadyExists, and members that can't be connected, which are
  // the same on all ranks, the world stays usable.
  // Errors:
  //   - InvalidArgument: the ranks make different requests (the message names them), or a rank does
  //     not exist or is named twice.
  //   - AlreadyExists: there is a set of these ranks; *id is its id, 0 for the set of all ranks.
  //   - Unavailable, DeadlineExceeded: members can't be connected.
  //   - All errors of Engine::Wait: the world is broken.
  absl::Status Add(std::vector<int> ranks, int32_t* id);

  // Removes a set. Every rank of the world must call it. Operations in flight on the set fail as
  // after a shutdown; their handles stay valid until they are released. After InvalidArgument and
  // NotFound, which are the same on all ranks, the world stays usable.
  // Errors:
  //   - InvalidArgument: the ranks make different requests.
  //   - NotFound: there is no such set, or the id is 0.
  //   - All errors of Engine::Wait: the world is broken.
  absl::Status Remove(int32_t id);

  // Returns the engine of set `id` (not 0), and translates the root ranks of the requests from
  // ranks of the world to ranks of the set.
  // Errors:
  //   - InvalidArgument: there is no such set, this rank or a root rank is not in it, or the
  //     operation is for the whole world only.
  absl::StatusOr<std::shared_ptr<engine::Engine>> Prepare(
      int32_t id, std::vector<negotiation::SignaturePtr>& requests) const;

  // Breaks all sets, and those added later, because the world is broken. Does not block.
  void Abort(const absl::Status& why);

  // Waits for an Add or Remove that is under way, and leaves all sets. REQUIRES: the world's engine
  // is shut down, and bounds.cancellation is cancelled. Idempotent.
  void Close();

 private:
  struct Set {
    std::vector<int> ranks;                        // sorted
    std::unique_ptr<group::ConnectedGroup> group;  // nullptr: this rank is not in it
  };

  // Checks, in a collective of the world, that all ranks make the same request.
  absl::Status Agree(const std::string& wish);
  absl::Status CheckRanks(const std::vector<int>& ranks) const;
  // Returns the id of the set of these ranks; -1: there is none.
  int32_t Find(const std::vector<int>& ranks) const;
  absl::StatusOr<std::shared_ptr<collectives::peer::PeerPort>> PortOfSets()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(registration_mutex_);
  absl::StatusOr<std::unique_ptr<group::ConnectedGroup>> Connect(int32_t id,
                                                                 const std::vector<int>& ranks,
                                                                 int own_rank,
                                                                 collectives::KeyExchange& keys)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(registration_mutex_);
  engine::EngineOptions OptionsOf(int32_t id, const std::vector<int>& ranks) const;

  const Dependencies deps_;
  absl::Mutex registration_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // one at a time
  int32_t next_id_ ABSL_GUARDED_BY(registration_mutex_) = 1;
  std::shared_ptr<collectives::peer::PeerPort> port_ ABSL_GUARDED_BY(registration_mutex_);
  mutable absl::Mutex mutex_;
  std::map<int32_t, Set> sets_ ABSL_GUARDED_BY(mutex_);
  absl::Status over_ ABSL_GUARDED_BY(mutex_);  // not OK: Abort was called
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_PROCESS_SETS_H_
