// The handshake of two ranks at the start of a connection: both prove that they know the epoch's
// secret, without showing it.
//
//   dialer   -> acceptor   protocol, epoch, size, own rank, acceptor's rank, dialer's nonce
//   acceptor -> dialer     acceptor's nonce, acceptor's proof (peer_proof.h)
//   dialer   -> acceptor   dialer's proof
//   acceptor -> dialer     one byte: welcome
//
// The peer's number (net::peer::Handshake) is its rank. Pure except for the nonce.
#ifndef COLLECTIVES_PEER_HANDSHAKE_H_
#define COLLECTIVES_PEER_HANDSHAKE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/net/peer/handshake.h"
#include "collectives/types.h"

namespace hvd::collectives {

// The length of a protocol's name, the first bytes of a connection. Names must be unique.
inline constexpr size_t kProtocolBytes = 8;

// `protocol` and `group` must outlive the result. `binding`: see ProofSubject.
std::unique_ptr<net::peer::Handshake> MakeDialerHandshake(absl::string_view protocol,
                                                          const GroupInfo& group, int peer,
                                                          std::string binding = "");
// Accepts any rank of the group except its own. Otherwise as MakeDialerHandshake.
std::unique_ptr<net::peer::Handshake> MakeAcceptorHandshake(absl::string_view protocol,
                                                            const GroupInfo& group,
                                                            std::string binding = "");

}  // namespace hvd::collectives

#endif  // COLLECTIVES_PEER_HANDSHAKE_H_
