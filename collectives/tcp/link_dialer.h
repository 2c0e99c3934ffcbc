// The dialer of a link: connects to a peer's port.
#ifndef COLLECTIVES_TCP_LINK_DIALER_H_
#define COLLECTIVES_TCP_LINK_DIALER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/net/wire.h"
#include "collectives/peer/peer_handshake.h"
#include "collectives/types.h"

namespace hvd::collectives::tcp {

// Connects to rank `peer`'s PeerPort at `address` (kLinkAddressBytes) for a connection for tensors,
// as net::peer::Dial does.
// Errors: those of Dial, and
//   - InvalidArgument: `address` is invalid.
absl::StatusOr<net::Wire> DialLink(peer::Purpose purpose, const GroupInfo& group, int peer,
                                   absl::string_view address, absl::Time deadline,
                                   const Cancellation* cancellation);

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_LINK_DIALER_H_
