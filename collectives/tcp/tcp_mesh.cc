#include "collectives/tcp/tcp_mesh.h"

#include <utility>

#include "base/os/process_limits.h"
#include "base/status_macros.h"
#include "collectives/tcp/link_dialer.h"

namespace hvd::collectives::tcp {
namespace {

// File descriptors for the rest of the process, and for strangers.
constexpr size_t kSpareFiles = 400;

}  // namespace

absl::StatusOr<std::unique_ptr<TcpMesh>> TcpMesh::Open(const GroupInfo& group) {
  std::unique_ptr<TcpMesh> mesh(new TcpMesh(group));
  ASSIGN_OR_RETURN(mesh->acceptor_, LinkAcceptor::Start(mesh->group_));
  return mesh;
}

// Free of deadlocks: acceptors answer on their own threads, so every rank completes its calls to
// lower ranks, whatever those do; and then all calls from higher ranks have been made.
absl::StatusOr<std::vector<net::Wire>> TcpMesh::Connect(const std::vector<int>& peers,
                                                        absl::Time deadline,
                                                        const Cancellation* cancellation) {
  os::AllowMoreFiles(peers.size() + kSpareFiles);
  std::vector<net::Wire> wires(peers.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] > group_.rank) continue;
    ASSIGN_OR_RETURN(wires[i],
                     DialLink(group_, peers[i], addresses_[peers[i]], deadline, cancellation));
  }
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] < group_.rank) continue;
    ASSIGN_OR_RETURN(wires[i], acceptor_->Await(peers[i], deadline, cancellation));
  }
  return wires;
}

}  // namespace hvd::collectives::tcp
