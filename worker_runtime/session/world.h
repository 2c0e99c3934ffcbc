// A world from a member's point of view: an immutable value, equal on all members except for `own`.
#ifndef WORKER_RUNTIME_SESSION_WORLD_H_
#define WORKER_RUNTIME_SESSION_WORLD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "base/settings/on_corruption.h"
#include "base/status_macros.h"
#include "rendezvous/placement/placement.h"

namespace hvd::worker_runtime::session {

struct Peer {
  std::string host;     // as the user wrote it
  std::string address;  // numeric
  int port = 0;
  rendezvous::placement::Placement place = {};
  // The identity of its process, the same in all worlds; 0 without a daemon.
  WorkerId worker = WorkerId(0);
  Incarnation incarnation = Incarnation(0);
};

// The members of a world, in rank order. In a large world they are fetched from the daemon on first
// use, because sending n members to n workers is quadratic. Thread-safe.
class Members {
 public:
  using Fetch = std::function<absl::StatusOr<std::vector<Peer>>()>;

  explicit Members(std::vector<Peer> peers) : peers_(std::move(peers)) {}
  explicit Members(Fetch fetch) : fetch_(std::move(fetch)) {}

  // Returns all members. The first call may ask the daemon.
  // Errors:
  //   - Internal: the daemon's answer is invalid.
  //   - All errors of RendezvousClient::GetMembers.
  absl::StatusOr<std::vector<Peer>> Get() {
    absl::MutexLock lock(&mutex_);
    if (peers_.empty()) {
      ASSIGN_OR_RETURN(peers_, fetch_());
    }
    return peers_;
  }

 private:
  const Fetch fetch_;
  absl::Mutex mutex_;
  std::vector<Peer> peers_ ABSL_GUARDED_BY(mutex_);
};

struct WorkerWorld {
  Epoch epoch;
  Peer own;
  Peer root;                         // rank 0
  std::shared_ptr<Members> members;  // including this worker
  bool homogeneous = true;           // all machines have the same number of ranks
  std::string secret;                // the epoch's secret
  bool sync_state = true;            // some member may lack the state of rank 0
  bool encrypt_data = false;         // network traffic between members uses TLS
  settings::OnCorruption on_corruption = settings::OnCorruption::kOff;

  int rank() const { return own.place.rank; }
  int size() const { return own.place.size; }
  const Peer& self() const { return own; }
  bool IsHomogeneous() const { return homogeneous; }
};

// The types below are the daemon's other answers to a worker that asks for a world.

// The worker is deferred: it must prepare itself and then ask again. `place` is its provisional
// placement.
struct DeferredPlace {
  rendezvous::placement::Placement place = {};
};

// The daemon's answer that releases a worker: the job no longer needs it, and it must exit with 0.
struct ReleasedFromJob {
  std::string reason;
};

using JoinAnswer = std::variant<WorkerWorld, DeferredPlace, ReleasedFromJob>;

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_WORLD_H_
