// The connections from this rank to the others of its group, each made on first use.
#ifndef COLLECTIVES_TCP_TCP_MESH_H_
#define COLLECTIVES_TCP_TCP_MESH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/net/peer/loop_part.h"
#include "base/net/wire.h"
#include "collectives/peer/peer_port.h"
#include "collectives/types.h"

namespace hvd::collectives::tcp {

// The higher of two ranks opens their connection; the lower one's port accepts it on a separate
// thread, so that the higher rank never waits for a busy lower one. Both ends are authenticated.
//
// Open, Learn and Connect belong to one thread.
class TcpMesh {
 public:
  // Enters the group at its port. Without one, opens one at group.address.
  // Errors: those of peer::PeerPort::Open and peer::PeerInbox::Enter.
  static absl::StatusOr<std::unique_ptr<TcpMesh>> Open(const GroupInfo& group);

  const GroupInfo& group() const { return group_; }
  // The address of this rank for its peers; kLinkAddressBytes.
  const std::string& address() const { return address_; }
  // Sets the address that `rank` has published.
  void Learn(int rank, absl::string_view address) { addresses_[rank] = std::string(address); }

  // Connects this rank with `peers`; returns the connections in their order. Each of them must call
  // it with this rank among its peers. REQUIRES: the addresses of those below this rank are known
  // (Learn).
  // Errors:
  //   - DeadlineExceeded, Unavailable, PermissionDenied: names the peer.
  //   - The cancellation's status: it was cancelled.
  absl::StatusOr<std::vector<net::Wire>> Connect(const std::vector<int>& peers, absl::Time deadline,
                                                 const Cancellation* cancellation);

  // Whether `peer` accepts connections at another address than this rank, so probably on another
  // host. REQUIRES: its address is known, or `peer` is this rank.
  bool IsElsewhere(int peer) const;

  // The number of further connections that this process has descriptors for, for each of so many
  // peers: 0 to peer::kMostFurther.
  int RoomForFurther(size_t peers) const;
  // Opens further connections to a lower rank that is connected; at most `most`, and fewer once one
  // fails.
  std::vector<net::Wire> DialFurther(int peer, int most, absl::Time deadline,
                                     const Cancellation* cancellation);
  // Takes those that a higher rank has opened.
  // Errors: those of peer::PeerInbox::Take.
  absl::StatusOr<std::vector<net::Wire>> TakeFurther(int peer, int number, absl::Time deadline,
                                                     const Cancellation* cancellation);

  // Closes the connections of peers that were not taken, and those that come later. Thread-safe.
  void Drop();

  // The mesh's part of the loop of the port's thread. Whoever uses it ends it.
  net::peer::LoopPart& loop() { return loop_; }

 private:
  TcpMesh(const GroupInfo& group, std::shared_ptr<peer::PeerInbox> inbox);

  const GroupInfo group_;
  const std::shared_ptr<peer::PeerInbox> inbox_;
  const std::string address_;
  net::peer::LoopPart loop_;
  std::vector<std::string> addresses_;  // by rank; empty: not known
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_TCP_MESH_H_
