#include "collectives/tcp/tcp_mesh.h"

#include <algorithm>
#include <utility>

#include "base/failpoint/failpoint.h"
#include "base/os/process_limits.h"
#include "base/status_macros.h"
#include "collectives/tcp/link_address.h"
#include "collectives/tcp/link_dialer.h"

namespace hvd::collectives::tcp {
namespace {

// File descriptors for the rest of the process, and for strangers.
constexpr size_t kSpareFiles = 400;

}  // namespace

absl::StatusOr<std::unique_ptr<TcpMesh>> TcpMesh::Open(const GroupInfo& group) {
  GroupInfo at_port = group;
  if (group.port == nullptr) {
    ASSIGN_OR_RETURN(at_port.port, peer::PeerPort::Open(group.address));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<peer::PeerInbox> inbox, peer::PeerInbox::Enter(at_port));
  return std::unique_ptr<TcpMesh>(new TcpMesh(at_port, std::move(inbox)));
}

TcpMesh::TcpMesh(const GroupInfo& group, std::shared_ptr<peer::PeerInbox> inbox)
    : group_(group),
      inbox_(std::move(inbox)),
      address_(LinkAddressOf(inbox_->address())),
      loop_(inbox_->loop()),
      addresses_(group.size) {}

// Free of deadlocks: ports answer on their own threads, so every rank completes its calls to
// lower ranks, whatever those do; and then all calls from higher ranks have been made.
absl::StatusOr<std::vector<net::Wire>> TcpMesh::Connect(const std::vector<int>& peers,
                                                        absl::Time deadline,
                                                        const Cancellation* cancellation) {
  os::AllowMoreFiles(peers.size() + kSpareFiles);
  std::vector<net::Wire> wires(peers.size());
  std::vector<int> higher;
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] > group_.rank) {
      higher.push_back(peers[i]);
      continue;
    }
    ASSIGN_OR_RETURN(wires[i], DialLink(peer::Purpose::kTensors, group_, peers[i],
                                        addresses_[peers[i]], deadline, cancellation));
    RETURN_IF_ERROR(FAILPOINT_STATUS("worker.connect.dialled"));
  }
  ASSIGN_OR_RETURN(std::vector<net::Wire> taken,
                   inbox_->Take(peer::Purpose::kTensors, higher, deadline, cancellation));
  auto next = taken.begin();
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] > group_.rank) wires[i] = std::move(*next++);
  }
  return wires;
}

// The port is not compared: it is another one for each process.
bool TcpMesh::IsElsewhere(int peer) const {
  if (peer == group_.rank) return false;
  const auto host = [](absl::string_view address) { return address.substr(0, kLinkHostBytes); };
  return host(addresses_[peer]) != host(address_);
}

int TcpMesh::RoomForFurther(size_t peers) const {
  const size_t allowed = os::AllowMoreFiles(peer::kMostFurther * peers + kSpareFiles);
  const size_t room = allowed > kSpareFiles ? (allowed - kSpareFiles) / peers : 0;
  return static_cast<int>(std::min<size_t>(room, peer::kMostFurther));
}

std::vector<net::Wire> TcpMesh::DialFurther(int peer, int most, absl::Time deadline,
                                            const Cancellation* cancellation) {
  std::vector<net::Wire> wires;
  while (static_cast<int>(wires.size()) < most) {
    absl::StatusOr<net::Wire> wire =
        DialLink(peer::FurtherTensors(static_cast<int>(wires.size())), group_, peer,
                 addresses_[peer], deadline, cancellation);
    if (!wire.ok()) break;
    wires.push_back(*std::move(wire));
  }
  return wires;
}

absl::StatusOr<std::vector<net::Wire>> TcpMesh::TakeFurther(int peer, int number,
                                                            absl::Time deadline,
                                                            const Cancellation* cancellation) {
  std::vector<net::Wire> wires;
  for (int i = 0; i < number; ++i) {
    ASSIGN_OR_RETURN(std::vector<net::Wire> taken,
                     inbox_->Take(peer::FurtherTensors(i), {peer}, deadline, cancellation));
    wires.push_back(std::move(taken.front()));
  }
  return wires;
}

void TcpMesh::Drop() {
  inbox_->Drop(peer::Purpose::kTensors);
  for (int i = 0; i < peer::kMostFurther; ++i) inbox_->Drop(peer::FurtherTensors(i));
}

}  // namespace hvd::collectives::tcp
