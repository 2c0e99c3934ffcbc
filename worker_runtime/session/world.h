// What a worker knows of the world it is in: an immutable value, the same on every member but for
// `rank`.
#ifndef WORKER_RUNTIME_SESSION_WORLD_H_
#define WORKER_RUNTIME_SESSION_WORLD_H_

#include <string>
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
};

struct WorkerWorld {
  Epoch epoch;
  int rank = 0;
  std::vector<Peer> peers;  // in rank order, this worker included
  std::string secret;       // of this epoch

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

}  // namespace hvd

#endif  // WORKER_RUNTIME_SESSION_WORLD_H_
