#include "worker_runtime/control/control_connect.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/peer/peer_dialer.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::control {
namespace {

absl::StatusOr<net::Wire> Connect(const collectives::GroupInfo& group, const std::string& address,
                                  int port, const WaitBounds& bounds) {
  ASSIGN_OR_RETURN(const net::SocketAddress root,
                   net::ParseSocketAddress(net::JoinHostPort(address, absl::StrCat(port))));
  const auto make_handshake = [&](std::string binding) {
    return collectives::MakeDialerHandshake(kControlProtocol, group, /*peer=*/0,
                                            std::move(binding));
  };
  ASSIGN_OR_RETURN(net::Wire wire,
                   net::peer::Dial({root, group.tls, make_handshake},
                                   Clock::Real().Now() + bounds.timeout, bounds.cancellation));
  RETURN_IF_ERROR(net::TuneForMessages(wire.fd()));
  return wire;
}

}  // namespace

absl::StatusOr<net::Wire> ConnectToRoot(const collectives::GroupInfo& group,
                                        const std::string& address, int port,
                                        const WaitBounds& bounds) {
  absl::StatusOr<net::Wire> wire = Connect(group, address, port, bounds);
  if (wire.ok()) return wire;
  return absl::Status(wire.status().code(),
                      absl::StrCat("rank ", group.rank, ": control connection to rank 0 at ",
                                   address, " port ", port, ": ", wire.status().message()));
}

}  // namespace hvd::worker_runtime::control
