// The thread that keeps a leader's lease alive, and notices that the leadership is lost.
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
  // Starts the thread. The first two must outlive it. `leader`: the leader's key.
  LeaseKeeper(KeyValueStore& store, Leadership& leadership, std::string leader,
              absl::Duration reattach);
  // Ends the thread, and the lease: another daemon may lead at once.
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

 private:
  void Run();
  // Refreshes the lease. OK: this daemon leads. Aborted: it does not. Others: unknown.
  absl::Status Refresh();

  KeyValueStore& store_;
  Leadership& leadership_;
  const std::string leader_;
  LeaseSchedule schedule_;  // the thread's
  std::thread thread_;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_LEASE_KEEPER_H_
