#include "collectives/tcp/link_dialer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/peer/peer_dialer.h"
#include "base/status_macros.h"
#include "collectives/tcp/link_address.h"
#include "collectives/unreached_rank.h"

namespace hvd::collectives::tcp {

absl::StatusOr<net::Wire> DialLink(peer::Purpose purpose, const GroupInfo& group, int peer,
                                   absl::string_view address, absl::Time deadline,
                                   const Cancellation* cancellation) {
  const auto dial = [&]() -> absl::StatusOr<net::Wire> {
    ASSIGN_OR_RETURN(const net::SocketAddress parsed, ParseLinkAddress(address));
    const auto make_handshake = [&](std::string binding) {
      return peer::MakeDialerHandshake(purpose, group, peer, std::move(binding));
    };
    return net::peer::Dial({parsed, group.tls, make_handshake}, deadline, cancellation);
  };
  absl::StatusOr<net::Wire> wire = dial();
  // The reason of a cancellation is passed on as it is: this peer has nothing to do with it.
  if (wire.ok() || (cancellation != nullptr && wire.status() == cancellation->status())) {
    return wire;
  }
  return WithUnreachedRank(
      absl::Status(wire.status().code(),
                   absl::StrCat("can't connect to rank ", peer, ": ", wire.status().message())),
      peer);
}

}  // namespace hvd::collectives::tcp
