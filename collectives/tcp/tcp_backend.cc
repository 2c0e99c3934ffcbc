#include "collectives/tcp/tcp_backend.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/cancellation_watch.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/links/links_backend.h"
#include "collectives/links/links_communicator.h"
#include "collectives/links/neighbours.h"
#include "collectives/tcp/link_address.h"
#include "collectives/tcp/tcp_links.h"
#include "collectives/tcp/tcp_mesh.h"

namespace hvd::collectives::tcp {
namespace {

constexpr char kMeshKey[] = "tcp-mesh";

// The ranks that this rank is linked with from the start. In a large group these links form a tree,
// so that a failure spreads to all ranks, whichever operations have linked further ranks.
std::vector<int> FirstLinks(const GroupInfo& group, int most_direct) {
  if (group.size > most_direct) return links::BinomialTree(group.rank, group.size, 0).Neighbours();
  std::vector<int> all(group.size);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Distributes the addresses of all ranks over the first links. So the daemon, which serves all
// ranks at once, has to send each rank only the addresses of its first links, not those of the
// group.
absl::Status ShareAddresses(TcpLinks& links, const links::Peers& peers, absl::Duration timeout,
                            const WaitBounds& bounds) {
  std::string all(peers.size() * kLinkAddressBytes, '\0');
  all.replace(peers.rank() * kLinkAddressBytes, kLinkAddressBytes, links.mesh().address());
  links::Scratch scratch;
  const CancellationWatch watch(bounds.cancellation,
                                [&](const absl::Status& why) { links.Break(why, links.rank()); });
  const absl::Status shared =
      links::TreeAllGather(links::Phase{peers, scratch, timeout}, &all[0], kLinkAddressBytes);
  if (!shared.ok()) {
    links.Break(shared, links.rank());
    return links.status();
  }
  for (int rank = 0; rank < peers.size(); ++rank) {
    links.mesh().Learn(rank, all.substr(rank * kLinkAddressBytes, kLinkAddressBytes));
  }
  return absl::OkStatus();
}

class TcpBackend : public links::LinksBackend {
 public:
  TcpBackend(int most_direct, const SplitRule& rule)
      : LinksBackend("tcp"), most_direct_(most_direct), rule_(rule) {}

 private:
  // Steps: start to listen, before any peer can know the address; get the addresses of the first
  // links through the key exchange; connect them; in a large group get all other addresses over
  // them.
  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectPeers(
      const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) override {
    const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
    const auto left = [&] {
      return std::max(deadline - Clock::Real().Now(), absl::ZeroDuration());
    };
    ASSIGN_OR_RETURN(std::unique_ptr<TcpMesh> mesh, TcpMesh::Open(group));
    const std::vector<int> first = FirstLinks(group, most_direct_);
    ASSIGN_OR_RETURN(const KeyExchange::Selected addresses,
                     keys.Gather(kMeshKey, mesh->address(), first, left()));
    for (size_t i = 0; i < first.size(); ++i) mesh->Learn(first[i], addresses.values[i]);
    auto connections = std::make_shared<TcpLinks>(std::move(mesh), rule_);
    RETURN_IF_ERROR(connections->Connect(first, left(), bounds.cancellation));
    std::vector<int> all(group.size);
    std::iota(all.begin(), all.end(), 0);
    links::Peers peers(connections, std::move(all));
    if (group.size > most_direct_) {
      RETURN_IF_ERROR(ShareAddresses(*connections, peers, left(), bounds));
    }
    return std::make_unique<links::LinksCommunicator>(group.epoch, std::move(peers), most_direct_);
  }

  const int most_direct_;
  const SplitRule rule_;
};

}  // namespace

std::unique_ptr<MeshBackend> MakeTcpBackend() {
  return MakeSparseTcpBackend(links::kMostDirectRanks);
}

std::unique_ptr<MeshBackend> MakeSparseTcpBackend(int most_direct, const SplitRule& rule) {
  return std::make_unique<TcpBackend>(most_direct, rule);
}

}  // namespace hvd::collectives::tcp
