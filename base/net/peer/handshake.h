// One end of a handshake that authenticates the other end of a connection.
#ifndef BASE_NET_PEER_HANDSHAKE_H_
#define BASE_NET_PEER_HANDSHAKE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::net::peer {

// The other end of a connection, and what the connection is for. The handshake says what the first
// two numbers mean.
struct PeerId {
  int purpose = 0;
  int group = 0;
  int number = -1;  // its number among its kind, e.g. its rank
};

// The ends speak in turns, and every message has a fixed length, so that a peer that is not
// authenticated can't make this process buffer data. Not thread-safe.
class Handshake {
 public:
  virtual ~Handshake() = default;

  // The bytes to send before anything is received; may be empty.
  virtual std::string Start() = 0;
  // The number of bytes that the next Step takes. 0: both ends are authenticated, and the handshake
  // is over once all answers are sent.
  virtual size_t wanted() const = 0;
  // Handles the next wanted() bytes; returns the answer to send.
  // Errors:
  //   - PermissionDenied: the peer is not authenticated; the caller must close the connection.
  virtual absl::StatusOr<std::string> Step(absl::string_view bytes) = 0;
  // The other end, or who it claims to be until wanted() is 0.
  virtual PeerId peer() const { return {}; }
};

}  // namespace hvd::net::peer

#endif  // BASE_NET_PEER_HANDSHAKE_H_
