#include "worker_runtime/control/control_connect.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/peer/peer_dialer.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "collectives/peer/peer_handshake.h"
#include "collectives/peer/peer_port.h"
#include "collectives/unreached_rank.h"

namespace hvd::worker_runtime::control {
namespace {

absl::StatusOr<net::Wire> Connect(const collectives::GroupInfo& group, const std::string& address,
                                  int port, const WaitBounds& bounds) {
  ASSIGN_OR_RETURN(const net::SocketAddress root,
                   net::ParseSocketAddress(net::JoinHostPort(address, absl::StrCat(port))));
  const auto make_handshake = [&](std::string binding) {
    return collectives::peer::MakeDialerHandshake(collectives::peer::Purpose::kControl, group,
                                                  /*peer=*/0, std::move(binding));
  };
  ASSIGN_OR_RETURN(net::Wire wire,
                   net::peer::Dial({root, group.tls, make_handshake},
                                   Clock::Real().Now() + bounds.timeout, bounds.cancellation));
  RETURN_IF_ERROR(net::TuneForMessages(wire.fd()));
  return wire;
}

}  // namespace

absl::StatusOr<std::vector<net::Wire>> AcceptMembers(const collectives::GroupInfo& group,
                                                     const WaitBounds& bounds) {
  std::vector<net::Wire> wires(group.size);
  if (group.size == 1) return wires;
  ASSIGN_OR_RETURN(const std::shared_ptr<collectives::peer::PeerInbox> inbox,
                   collectives::peer::PeerInbox::Enter(group));
  std::vector<int> members(group.size - 1);
  std::iota(members.begin(), members.end(), 1);
  absl::StatusOr<std::vector<net::Wire>> taken =
      inbox->Take(collectives::peer::Purpose::kControl, members,
                  Clock::Real().Now() + bounds.timeout, bounds.cancellation);
  if (bounds.cancellation != nullptr) RETURN_IF_ERROR(bounds.cancellation->status());
  if (!taken.ok()) {
    return collectives::WithText(
        taken.status(),
        absl::StrCat("rank 0 waited for control connections: ", taken.status().message()));
  }
  std::move(taken->begin(), taken->end(), wires.begin() + 1);
  for (const int member : members) RETURN_IF_ERROR(net::TuneForMessages(wires[member].fd()));
  return wires;
}

absl::StatusOr<net::Wire> ConnectToRoot(const collectives::GroupInfo& group,
                                        const std::string& address, int port,
                                        const WaitBounds& bounds) {
  absl::StatusOr<net::Wire> wire = Connect(group, address, port, bounds);
  if (wire.ok()) return wire;
  return collectives::WithUnreachedRank(
      absl::Status(wire.status().code(),
                   absl::StrCat("rank ", group.rank, ": control connection to rank 0 at ", address,
                                " port ", port, ": ", wire.status().message())),
      /*rank=*/0);
}

}  // namespace hvd::worker_runtime::control
