// The dialer of a connection to a peer.
#ifndef BASE_NET_PEER_PEER_DIALER_H_
#define BASE_NET_PEER_PEER_DIALER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/net/address.h"
#include "base/net/peer/peer_opening.h"
#include "base/net/wire.h"

namespace hvd::net::peer {

// Whom to connect to, and how.
struct Dialing {
  SocketAddress address;
  std::shared_ptr<const TlsContext> tls;  // null: no encryption
  PeerOpening::MakeHandshake make_handshake;
};

// Connects to a PeerListener; both ends of the result are authenticated. Blocks. Tries again, with
// BackOff, if the connection is lost during the handshake: a listener with many strangers may close
// it. A refused connection is final, since peers publish an address only when they listen there.
// `cancellation` may be null.
// Errors:
//   - DeadlineExceeded: the deadline passed.
//   - The cancellation's status: it was cancelled.
//   - Unavailable: nothing listens there, or there is no route.
//   - ResourceExhausted: too many open files.
//   - PermissionDenied: the peer is not authenticated.
absl::StatusOr<Wire> Dial(const Dialing& dialing, absl::Time deadline,
                          const Cancellation* cancellation);

}  // namespace hvd::net::peer

#endif  // BASE_NET_PEER_PEER_DIALER_H_
