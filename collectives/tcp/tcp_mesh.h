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
#include "base/event_loop.h"
#include "base/net/wire.h"
#include "collectives/tcp/link_acceptor.h"
#include "collectives/types.h"

namespace hvd::collectives::tcp {

// The higher of two ranks opens their connection; the lower one's acceptor accepts it on a separate
// thread, so that the higher rank never waits for a busy lower one. Both ends are authenticated.
//
// Open, Learn and Connect belong to one thread.
class TcpMesh {
 public:
  // Listens for peers from now on.
  // Errors:
  //   - InvalidArgument: group.address is not a numeric address of this machine.
  static absl::StatusOr<std::unique_ptr<TcpMesh>> Open(const GroupInfo& group);

  const GroupInfo& group() const { return group_; }
  // The address of this rank for its peers; kLinkAddressBytes.
  const std::string& address() const { return acceptor_->address(); }
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

  // Closes the connections of peers that Connect did not take, and those that come later.
  // Thread-safe.
  void Drop() { acceptor_->Drop(); }

  // Ends the thread that accepts connections.
  void Stop() { acceptor_->Stop(); }
  // The loop of that thread, until Stop().
  EventLoop& loop() { return acceptor_->loop(); }

 private:
  explicit TcpMesh(const GroupInfo& group) : group_(group), addresses_(group.size) {}

  const GroupInfo group_;
  std::unique_ptr<LinkAcceptor> acceptor_;
  std::vector<std::string> addresses_;  // by rank; empty: not known
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_TCP_MESH_H_
