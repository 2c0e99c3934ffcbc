// The handshake of two ranks at the start of a connection: both prove that they know the epoch's
// secret, without showing it.
//
//   dialer   -> acceptor   protocol, epoch, size, own rank, the acceptor's rank, nonce of the
//   dialer acceptor -> dialer     nonce of the acceptor, proof of the acceptor (peer_proof.h)
//   dialer   -> acceptor   proof of the dialer
//   acceptor -> dialer     one byte: welcome
//
// Every part has a fixed length, so that nothing of a stranger's is kept.
#ifndef COLLECTIVES_PEER_HANDSHAKE_H_
#define COLLECTIVES_PEER_HANDSHAKE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/types.h"

namespace hvd::collectives {

// One end's part in it. Pure but for the nonce; not thread-safe.
class PeerHandshake {
 public:
  virtual ~PeerHandshake() = default;

  // What to send before anything is received; may be nothing.
  virtual std::string Start() = 0;
  // How many bytes the next Step takes; 0: it is over when all answers are sent, and both ends have
  // proved themselves.
  virtual size_t wanted() const = 0;
  // Returns what to answer.
  // Errors:
  //   - PermissionDenied: hang up.
  virtual absl::StatusOr<std::string> Step(absl::string_view bytes) = 0;
  // Whom the other end is, or claims to be; -1: it has not said so.
  virtual int peer() const = 0;
};

// kProtocolBytes that no other protocol begins with.
inline constexpr size_t kProtocolBytes = 8;

// `protocol` and `group` must outlive what they return. `binding`: as in ProofSubject.
std::unique_ptr<PeerHandshake> MakeDialerHandshake(absl::string_view protocol,
                                                   const GroupInfo& group, int peer,
                                                   std::string binding = "");
// Takes any rank of the group but its own.
std::unique_ptr<PeerHandshake> MakeAcceptorHandshake(absl::string_view protocol,
                                                     const GroupInfo& group,
                                                     std::string binding = "");

}  // namespace hvd::collectives

#endif  // COLLECTIVES_PEER_HANDSHAKE_H_
