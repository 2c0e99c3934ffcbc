// The handshake of two ranks at the start of a connection: both prove that they know the epoch's
// secret, without showing it.
//
//   dialer   -> acceptor   purpose, group, epoch, size, own rank, acceptor's rank, dialer's nonce
//   acceptor -> dialer     acceptor's nonce, acceptor's proof (peer_proof.h)
//   dialer   -> acceptor   dialer's proof
//   acceptor -> dialer     one byte: welcome
//
// In net::peer::PeerId the purpose is a Purpose, the group is GroupInfo::id, and the number is the
// peer's rank. Pure except for the nonce.
#ifndef COLLECTIVES_PEER_PEER_HANDSHAKE_H_
#define COLLECTIVES_PEER_PEER_HANDSHAKE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/net/peer/handshake.h"
#include "collectives/types.h"

namespace hvd::collectives::peer {

// What a connection is for. Behind kControl come the further connections for tensors.
enum class Purpose { kTensors, kControl };
// Two ranks have at most this many connections for tensors beside the first one.
inline constexpr int kMostFurther = 7;
inline constexpr size_t kPurposes = 2 + kMostFurther;
// The purpose of a further connection for tensors, `number` from 0.
constexpr Purpose FurtherTensors(int number) { return static_cast<Purpose>(2 + number); }

// The group with this GroupInfo::id; nullptr: there is none.
using FindGroup = std::function<std::shared_ptr<const GroupInfo>(int id)>;

// `group` must outlive the result. `binding`: see ProofSubject.
std::unique_ptr<net::peer::Handshake> MakeDialerHandshake(Purpose purpose, const GroupInfo& group,
                                                          int peer, std::string binding = "");
// Accepts the ranks of the groups that `find_group` knows, except for this rank itself. Calls it
// once, in a Step.
std::unique_ptr<net::peer::Handshake> MakeAcceptorHandshake(FindGroup find_group,
                                                            std::string binding = "");

}  // namespace hvd::collectives::peer

#endif  // COLLECTIVES_PEER_PEER_HANDSHAKE_H_
