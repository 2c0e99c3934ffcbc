// A world as one of its members sees it: an immutable value, the same on every member except for
// `own`.
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
#include "base/status_macros.h"
#include "rendezvous/placement/placement.h"

namespace hvd::worker_runtime::session {

struct Peer {
  std::string host;     // as the user wrote it
  std::string address;  // numeric
  int control_port = 0;
  rendezvous::placement::Placement place = {};
  // The identity of its process, in any world; 0 without a daemon.
  WorkerId worker = WorkerId(0);
  Incarnation incarnation = Incarnation(0);
};

// All members of a world, in rank order. Those of a large world are fetched on first use.
// Thread-safe.
class Members {
 public:
  using Fetch = std::function<absl::StatusOr<std::vector<Peer>>()>;

  explicit Members(std::vector<Peer> peers) : peers_(std::move(peers)) {}
  explicit Members(Fetch fetch) : fetch_(std::move(fetch)) {}

  // May ask the daemon, the first time.
  // Errors: those of the daemon's answer.
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
  std::shared_ptr<Members> members;  // all of them, this worker included
  bool homogeneous = true;           // every machine has as many ranks as the first
  std::string secret;                // of this epoch
  bool sync_state = true;            // some member may not hold the state of rank 0
  bool encrypt_data = false;         // network traffic between members uses TLS

  int rank() const { return own.place.rank; }
  int size() const { return own.place.size; }
  const Peer& self() const { return own; }
  bool IsHomogeneous() const { return homogeneous; }
};

// The daemon's other answers to a worker that asks for a world.

// The caller must get ready first and then ask again; its place if the world formed now.
struct DeferredPlace {
  rendezvous::placement::Placement place = {};
};

// The caller is no longer wanted and is to exit with 0.
struct ReleasedFromJob {
  std::string reason;
};

using JoinAnswer = std::variant<WorkerWorld, DeferredPlace, ReleasedFromJob>;

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_WORLD_H_
