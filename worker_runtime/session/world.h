// What a worker knows of the world it is in: an immutable value, the same on every member but for
// `rank`.
#ifndef WORKER_RUNTIME_SESSION_WORLD_H_
#define WORKER_RUNTIME_SESSION_WORLD_H_

#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"

namespace hvd {

struct Peer {
  std::string host;     // as the user wrote it
  std::string address;  // numeric
  int control_port = 0;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  // Which process it is, in any world; 0 without a daemon.
  WorkerId worker = WorkerId(0);
  Incarnation incarnation = Incarnation(0);
};

struct WorkerWorld {
  Epoch epoch;
  int rank = 0;
  std::vector<Peer> peers;  // in rank order, this worker included
  std::string secret;       // of this epoch
  bool sync_state = true;   // some member may not hold the state of rank 0

  int size() const { return static_cast<int>(peers.size()); }
  const Peer& self() const { return peers[rank]; }
  // Whether every host has as many ranks as the first.
  bool IsHomogeneous() const {
    for (const Peer& peer : peers) {
      if (peer.local_size != peers.front().local_size) return false;
    }
    return true;
  }
};

// The daemon's other answers to who asks for a world.

// The caller is to get ready first and then to ask again; where it would stand now.
struct DeferredPlace {
  Peer place;
  int rank = 0;
  int size = 1;
};

// The caller is not wanted any more and is to exit with 0.
struct ReleasedFromJob {
  std::string reason;
};

using JoinAnswer = std::variant<WorkerWorld, DeferredPlace, ReleasedFromJob>;

}  // namespace hvd

#endif  // WORKER_RUNTIME_SESSION_WORLD_H_
