// A mesh of TCP connections from this rank to others, each made on first use.
#ifndef COLLECTIVES_GLOO_GLOO_MESH_H_
#define COLLECTIVES_GLOO_GLOO_MESH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/net/wire.h"
#include "collectives/gloo/link/link_acceptor.h"
#include "collectives/types.h"
#include "gloo/transport/context.h"
#include "gloo/transport/tcp/device.h"

namespace hvd::collectives::gloo {

// Makes Gloo's event loop iterate quickly while a mesh is closed. Gloo waits for an iteration of
// its loop whenever it removes a socket, and an idle loop iterates every 10 ms: a mesh of 32 ranks
// would need 0.3 s. While active, the loop iterates every 100 us. SetActive may be called from any
// thread.
class LoopTicker : public ::gloo::transport::tcp::Handler {
 public:
  LoopTicker();
  ~LoopTicker() override;

  // REQUIRES: `device` is destroyed before this.
  void Attach(::gloo::transport::tcp::Device& device);
  void SetActive(bool active);

 private:
  void handleEvents(int events) override;

  const int fd_;
};

// The higher of two ranks opens their connection; the lower one's acceptor accepts it on a separate
// thread, so that the higher rank never waits for a busy lower one. Both ends are authenticated
// before a connection is handed to Gloo.
//
// Open, Learn and Connect belong to one thread. The destructor closes the connections.
class GlooMesh {
 public:
  // Listens for peers from now on.
  // Errors:
  //   - InvalidArgument: group.address is not a numeric address of this machine.
  static absl::StatusOr<std::unique_ptr<GlooMesh>> Open(const GroupInfo& group);
  ~GlooMesh();

  // The address of this rank for its peers; kLinkAddressBytes.
  const std::string& address() const { return acceptor_->address(); }
  // Sets the address that `rank` has published.
  void Learn(int rank, absl::string_view address) { addresses_[rank] = std::string(address); }

  // Connects this rank with `peers`. Each of them must call it with this rank among its peers.
  // REQUIRES: none of `peers` is connected yet; the addresses of those below this rank are known
  // (Learn).
  // Errors:
  //   - DeadlineExceeded, Unavailable, PermissionDenied: names the peer.
  //   - The cancellation's status: it was cancelled.
  absl::Status Connect(const std::vector<int>& peers, absl::Time deadline,
                       const Cancellation* cancellation);

  // Closes the connections of peers that Connect did not take, and those that come later.
  // Thread-safe.
  void Drop() { acceptor_->Drop(); }
  // Makes the loop iterate quickly from now on. Thread-safe.
  void Hurry() { ticker_.SetActive(true); }

  ::gloo::transport::Context& context() { return *context_; }

 private:
  explicit GlooMesh(const GroupInfo& group) : group_(group), addresses_(group.size) {}
  absl::Status Adopt(int peer, absl::StatusOr<net::Wire> connection);

  const GroupInfo group_;
  std::unique_ptr<link::LinkAcceptor> acceptor_;
  std::vector<std::string> addresses_;  // by rank; empty: not known
  LoopTicker ticker_;
  std::shared_ptr<::gloo::transport::Context> context_;  // owns device and pairs
};

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_MESH_H_
