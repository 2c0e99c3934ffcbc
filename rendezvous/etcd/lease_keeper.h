// The thread that refreshes a leader's lease and detects the loss of the leadership.
#ifndef RENDEZVOUS_ETCD_LEASE_KEEPER_H_
#define RENDEZVOUS_ETCD_LEASE_KEEPER_H_

#include <string>
#include <thread>

#include "absl/time/time.h"
#include "rendezvous/etcd/key_value_store.h"
#include "rendezvous/etcd/leadership.h"
#include "rendezvous/etcd/lease_schedule.h"

namespace hvd::rendezvous::etcd {

class LeaseKeeper {
 public:
  // Starts the thread. The first two arguments must outlive this object. `leader` is the leader's
  // key.
  LeaseKeeper(KeyValueStore& store, Leadership& leadership, std::string leader,
              absl::Duration reattach);
  // Stops the thread and revokes the lease, so that another daemon can lead at once.
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

 private:
  void Run();
  // Refreshes the lease and checks the leader's key. OK: this daemon leads. Aborted: it does not.
  // Other codes: unknown.
  absl::Status Refresh();

  KeyValueStore& store_;
  Leadership& leadership_;
  const std::string leader_;
  LeaseSchedule schedule_;  // used by the thread only
  std::thread thread_;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_LEASE_KEEPER_H_
