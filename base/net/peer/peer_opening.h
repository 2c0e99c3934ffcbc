// The opening of a connection to a peer: the connection during its handshake, at either end.
#ifndef BASE_NET_PEER_PEER_OPENING_H_
#define BASE_NET_PEER_PEER_OPENING_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/net/peer/handshake.h"
#include "base/net/strangers.h"
#include "base/net/wire.h"

namespace hvd::net::peer {

// A non-blocking state machine: Advance() does what is possible now; the owner then waits for the
// readiness that it returned. Never reads past the handshake's last byte. Not thread-safe.
class PeerOpening {
 public:
  enum class Progress { kWantsToRead, kWantsToWrite, kProved, kFailed };

  // Called with the wire's channel binding once the wire is open (for TLS: negotiated).
  using MakeHandshake = std::function<std::unique_ptr<Handshake>(std::string binding)>;

  // Turns on TCP keepalive and TCP_NODELAY on the wire, for the handshake and for later.
  PeerOpening(Wire wire, MakeHandshake make_handshake);

  Progress Advance();

  int fd() const { return wire_.fd(); }
  // See Handshake.
  PeerId peer() const { return handshake_ == nullptr ? PeerId() : handshake_->peer(); }
  // How far the other end has come, at an accepting end.
  Strangers::Stage stage() const;
  // The reason for kFailed.
  // Errors:
  //   - Unavailable: the other end closed the connection.
  //   - PermissionDenied: its proof is wrong, or it has no certificate of the job.
  const absl::Status& status() const { return status_; }
  // REQUIRES: kProved. The next byte on the wire is the first after the handshake.
  Wire TakeWire() { return std::move(wire_); }

 private:
  Progress OpenWire();
  Progress HungUp();
  Progress Fail(const absl::Status& why);

  Wire wire_;
  const MakeHandshake make_handshake_;
  std::unique_ptr<Handshake> handshake_;  // nullptr until the wire is open
  std::string unsent_;
  std::string received_;  // of the handshake's next message
  absl::Status status_;
};

}  // namespace hvd::net::peer

#endif  // BASE_NET_PEER_PEER_OPENING_H_
