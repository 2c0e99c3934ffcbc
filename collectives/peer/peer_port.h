// The TCP port at which a rank accepts the connections of its peers: for tensors and for control,
// of all groups of a world.
#ifndef COLLECTIVES_PEER_PEER_PORT_H_
#define COLLECTIVES_PEER_PEER_PORT_H_

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>  // NOLINT: its own one
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/address.h"
#include "base/net/peer/peer_listener.h"
#include "base/net/wire.h"
#include "collectives/peer/peer_handshake.h"
#include "collectives/types.h"

namespace hvd::collectives::peer {

class PeerInbox;

// Listens from the beginning, since the request to join a world contains the port. Until the first
// group enters, connections wait in the kernel's backlog: their secret and TLS are not known yet.
// From then on a thread accepts and authenticates, so that a peer can connect even while this rank
// is busy. At each stage of the handshake one stranger per rank of the first group, and
// kSpareStrangers, are kept; see net::peer::PeerListener. A peer that is hung up on dials again
// (net::peer::Dial), so one that names a group which has not entered yet is not lost.
//
// Thread-safe. Owned by its groups and whoever opened it. Must not be destroyed by its own thread.
class PeerPort {
 public:
  static constexpr size_t kSpareStrangers = 128;                  // beside one connection per peer
  static constexpr absl::Duration kPatience = absl::Seconds(30);  // a peer may be starved of CPU

  // Listens at a numeric address, at a port that the kernel selects.
  // Errors:
  //   - InvalidArgument: `address` is not a numeric address of this machine.
  //   - Unavailable: the kernel refuses; says why.
  static absl::StatusOr<std::shared_ptr<PeerPort>> Open(const std::string& address,
                                                        absl::Duration patience = kPatience);
  // The same with a socket that listens.
  static absl::StatusOr<std::shared_ptr<PeerPort>> Adopt(Fd listener,
                                                         absl::Duration patience = kPatience);
  ~PeerPort();
  PeerPort(const PeerPort&) = delete;
  PeerPort& operator=(const PeerPort&) = delete;

  const net::SocketAddress& address() const { return address_; }
  int number() const { return number_; }
  // Whether a group is here.
  bool in_use() const;

 private:
  friend class PeerInbox;

  PeerPort(Fd listener, const net::SocketAddress& address, int number, absl::Duration patience)
      : address_(address), number_(number), patience_(patience), socket_(std::move(listener)) {}

  absl::Status Serve(const GroupInfo& first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const GroupInfo> Find(int id) const;
  void Deliver(net::Wire wire, const net::peer::PeerId& peer);

  const net::SocketAddress address_;
  const int number_;
  const absl::Duration patience_;

  mutable absl::Mutex mutex_;
  Fd socket_ ABSL_GUARDED_BY(mutex_);  // until the first group enters
  absl::Status served_ ABSL_GUARDED_BY(mutex_);
  struct Entry {
    PeerInbox* inbox;  // leaves before it is destroyed
    std::weak_ptr<PeerInbox> owner;
  };
  std::map<int, Entry> groups_ ABSL_GUARDED_BY(mutex_);  // by their id
  // Set once, when the first group enters.
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<net::peer::PeerListener> listener_;  // its handlers run on thread_
  std::thread thread_;
};

// A group at a port: the connections that its other ranks have opened, by purpose, until they are
// asked for. At most one per rank and purpose is kept, the newest, so that a peer whose connection
// was closed can dial again. So a connection for a purpose that nobody has asked about yet waits
// here and holds up no other one. Thread-safe, but one thread at a time takes connections for
// control, and one those for tensors.
class PeerInbox {
 public:
  // Enters `group` at group.port. Whoever enters it while its inbox is there gets that one.
  // REQUIRES: group.port != nullptr. Its groups have the same epoch and `tls`.
  // Errors:
  //   - ResourceExhausted, Unavailable: the port can't be served; says why.
  static absl::StatusOr<std::shared_ptr<PeerInbox>> Enter(const GroupInfo& group);
  // Closes the connections that were not taken. Later ones of this group are refused.
  ~PeerInbox();

  // The loop of the port's thread, which runs as long as this inbox lives.
  EventLoop& loop() { return *port_->loop_; }
  const net::SocketAddress& address() const { return port_->address(); }

  // Returns the connections that `peers` have opened, in their order, once all have come. Later
  // connections of these peers for this purpose are refused.
  // Errors:
  //   - DeadlineExceeded: the deadline passed, by a second; names the peers that have not come.
  //   They
  //     may have been waiting for others. Those that dial in vain know whom they do not reach, and
  //     the second lets them be the first to say so.
  //   - The cancellation's status: it was cancelled.
  //   - ResourceExhausted: too many open files.
  absl::StatusOr<std::vector<net::Wire>> Take(Purpose purpose, const std::vector<int>& peers,
                                              absl::Time deadline,
                                              const Cancellation* cancellation);

  // Returns the connections for this purpose that have come and were not taken, by their ranks.
  // Does not wait. Later connections of these peers for this purpose are refused.
  std::map<int, net::Wire> TakeArrived(Purpose purpose);
  // A descriptor for poll, readable if a connection may have come since the last TakeArrived, for
  // whoever takes connections for this purpose in no other way. Borrowed.
  int news(Purpose purpose);

  // Closes the connections for this purpose that were not taken, and those that come later.
  void Drop(Purpose purpose);

 private:
  friend class PeerPort;
  // The connections for one purpose.
  struct Box {
    Fd news;  // an eventfd: a peer has come; see WhereNewsOf
    std::map<int, net::Wire> arrived;
    std::set<int> handed_over;
    bool dropped = false;
  };

  explicit PeerInbox(const GroupInfo& group);

  Box& BoxOf(Purpose purpose) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return boxes_[static_cast<size_t>(purpose)];
  }
  // Further connections for tensors are announced where the first ones are: one thread takes both.
  static Purpose WhereNewsOf(Purpose purpose) {
    return purpose == Purpose::kControl ? purpose : Purpose::kTensors;
  }
  absl::StatusOr<int> NewsOf(Purpose purpose);
  // Empty: not all have come.
  std::vector<net::Wire> TakeIfAllCame(Purpose purpose, const std::vector<int>& peers);
  absl::Status NotCome(Purpose purpose, const std::vector<int>& peers);
  void Keep(Purpose purpose, int peer, net::Wire wire);

  const std::shared_ptr<PeerPort> port_;
  // Without its port: the port's thread may hold it longest.
  const std::shared_ptr<const GroupInfo> group_;
  absl::Mutex mutex_;  // after the port's
  std::array<Box, kPurposes> boxes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::collectives::peer

#endif  // COLLECTIVES_PEER_PEER_PORT_H_
