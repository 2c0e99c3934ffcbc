// The process sets of one world, besides the set of all ranks.
#ifndef WORKER_RUNTIME_API_PROCESS_SETS_H_
#define WORKER_RUNTIME_API_PROCESS_SETS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/cancellation.h"
#include "collectives/backend.h"
#include "worker_runtime/api/connected_group.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/engine/request.h"
#include "worker_runtime/session/world.h"

namespace hvd::worker_runtime::api {

// The members of a set have a separate engine for it, so that operations of different sets don't
// wait for each other; names count within a set. Sets are added and removed by operations that all
// ranks of the world take part in, over the world's engine; the daemon is not involved.
//
// A set breaks with the world, and the world with a set: `on_broken` gets the failure of a set, and
// the owner then calls Abort. Thread-safe.
class ProcessSets {
 public:
  // The dependencies on the world. Borrowed ones must outlive this object.
  struct Dependencies {
    const session::WorkerWorld& world;
    ConnectedGroup& group;  // the world's; started before the first Add
    collectives::Backend& backend;
    std::shared_ptr<collectives::DeviceBackend> devices;  // see ConnectedGroup::Start
    engine::EngineOptions options;  // of the sets' engines; some are replaced for each set
    std::shared_ptr<const net::TlsContext> tls;  // see GroupInfo
    WaitBounds bounds;                           // for connecting
    // A set's engine has failed. Called on that engine's thread; must not block.
    std::function<void(const absl::Status&)> on_broken;
  };

  explicit ProcessSets(Dependencies dependencies);
  ~ProcessSets() { Close(); }

  // Every rank of the world calls it, with the same ranks in any order. Blocks until the members
  // are connected. The new set's *id is the same on all ranks and is never reused.
  // Errors; the first four are the same on all ranks, and the world goes on:
  //   - InvalidArgument: the ranks ask for different things (names them), a rank does not exist or
  //     is named twice.
  //   - AlreadyExists: there is a set of these ranks; *id is its id, 0 for the set of all.
  //   - Unavailable, DeadlineExceeded: members can't be connected.
  //   - Others: those of Engine::Wait.
  absl::Status Add(std::vector<int> ranks, int32_t* id);

  // Every rank of the world calls it. Operations in flight on the set fail as after a shutdown;
  // handles stay until they are released.
  // Errors; the first two are the same on all ranks, and the world goes on:
  //   - InvalidArgument: the ranks ask for different things.
  //   - NotFound: no such set, or 0.
  //   - Others: those of Engine::Wait.
  absl::Status Remove(int32_t id);

  // The engine for these requests on set `id` (not 0). Translates their roots from ranks of the
  // world to ranks of the set.
  // Errors:
  //   - InvalidArgument: no such set, or this rank is not in it, or a root is not; or the operation
  //     is for the whole world only.
  absl::StatusOr<std::shared_ptr<engine::Engine>> Prepare(
      int32_t id, std::vector<negotiation::SignaturePtr>& requests) const;

  // Ends all sets, now and later, with the world. Does not block.
  void Abort(const absl::Status& why);

  // Waits for a registration that is under way, and leaves all sets. REQUIRES: the world's engine
  // is shut down, and bounds.cancellation is cancelled. Idempotent.
  void Close();

 private:
  struct Set {
    std::vector<int> ranks;                 // sorted
    std::unique_ptr<ConnectedGroup> group;  // nullptr: this rank is not in it
  };

  // Checks that all ranks of the world ask for the same.
  absl::Status Agree(const std::string& wish);
  absl::Status CheckRanks(const std::vector<int>& ranks) const;
  // The set of these ranks; -1: there is none.
  int32_t Find(const std::vector<int>& ranks) const;
  absl::StatusOr<std::unique_ptr<ConnectedGroup>> Connect(int32_t id, const std::vector<int>& ranks,
                                                          int own_rank,
                                                          collectives::KeyExchange& keys);
  engine::EngineOptions OptionsOf(int32_t id, const std::vector<int>& ranks) const;

  const Dependencies deps_;
  absl::Mutex registration_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // one at a time
  int32_t next_id_ ABSL_GUARDED_BY(registration_mutex_) = 1;
  mutable absl::Mutex mutex_;
  std::map<int32_t, Set> sets_ ABSL_GUARDED_BY(mutex_);
  absl::Status over_ ABSL_GUARDED_BY(mutex_);  // not OK: Abort was called
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_PROCESS_SETS_H_
