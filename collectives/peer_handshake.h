// The handshake of two ranks at the start of a connection: both prove that they know the epoch's
// secret, without showing it.
//
//   dialer   -> acceptor   protocol, epoch, size, own rank, acceptor's rank, dialer's nonce
//   acceptor -> dialer     acceptor's nonce, acceptor's proof (peer_proof.h)
//   dialer   -> acceptor   dialer's proof
//   acceptor -> dialer     one byte: welcome
//
// Every message has a fixed length, so that an unauthenticated peer can't make this process buffer
// data.
#ifndef COLLECTIVES_PEER_HANDSHAKE_H_
#define COLLECTIVES_PEER_HANDSHAKE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/types.h"

namespace hvd::collectives {

// One end of the handshake. Pure except for the nonce; not thread-safe.
class PeerHandshake {
 public:
  virtual ~PeerHandshake() = default;

  // The bytes to send before anything is received; may be empty.
  virtual std::string Start() = 0;
  // The number of bytes that the next Step takes. 0: both ends are authenticated, and the handshake
  // is over once all answers are sent.
  virtual size_t wanted() const = 0;
  // Handles the next wanted() bytes; returns the answer to send.
  // Errors:
  //   - PermissionDenied: the peer is not authenticated; the caller must close the connection.
  virtual absl::StatusOr<std::string> Step(absl::string_view bytes) = 0;
  // The rank of the other end, or the rank that it claims to be until wanted() is 0; -1: it has
  // sent none.
  virtual int peer() const = 0;
};

// The length of a protocol's name, the first bytes of a connection. Names must be unique.
inline constexpr size_t kProtocolBytes = 8;

// `protocol` and `group` must outlive the result. `binding`: see ProofSubject.
std::unique_ptr<PeerHandshake> MakeDialerHandshake(absl::string_view protocol,
                                                   const GroupInfo& group, int peer,
                                                   std::string binding = "");
// Accepts any rank of the group except its own. Otherwise as MakeDialerHandshake.
std::unique_ptr<PeerHandshake> MakeAcceptorHandshake(absl::string_view protocol,
                                                     const GroupInfo& group,
                                                     std::string binding = "");

}  // namespace hvd::collectives

#endif  // COLLECTIVES_PEER_HANDSHAKE_H_
