#include "collectives/tcp/tcp_backend.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/cancellation_watch.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/links/links_communicator.h"
#include "collectives/links/neighbours.h"
#include "collectives/links/solo_communicator.h"
#include "collectives/rank_text.h"
#include "collectives/tcp/link_address.h"
#include "collectives/tcp/tcp_links.h"
#include "collectives/tcp/tcp_mesh.h"

namespace hvd::collectives::tcp {
namespace {

constexpr char kName[] = "tcp";
constexpr char kMeshKey[] = "tcp-mesh";

absl::Status CheckGroup(const GroupInfo& group) {
  RETURN_IF_ERROR(CheckRank(group));
  if (group.secret.empty()) return absl::InvalidArgumentError("the group has no secret");
  return absl::OkStatus();
}

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
absl::Status ShareAddresses(TcpLinks& links, const links::Peers& peers, absl::Time deadline,
                            const WaitBounds& bounds) {
  std::string all(peers.size() * kLinkAddressBytes, '\0');
  all.replace(peers.rank() * kLinkAddressBytes, kLinkAddressBytes, links.mesh().address());
  links::Scratch scratch;
  const CancellationWatch watch(bounds.cancellation,
                                [&](const absl::Status& why) { links.Break(why, links.rank()); });
  const absl::Status shared =
      links::TreeAllGather(links::Phase{peers, scratch, deadline}, &all[0], kLinkAddressBytes);
  if (!shared.ok()) {
    links.Break(shared, links.rank());
    return links.status();
  }
  for (int rank = 0; rank < peers.size(); ++rank) {
    links.mesh().Learn(rank, all.substr(rank * kLinkAddressBytes, kLinkAddressBytes));
  }
  return absl::OkStatus();
}

// Steps: start to listen, before any peer can know the address; get the addresses of the first
// links through the key exchange; connect them; in a large group get all other addresses over them.
absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectPeers(const GroupInfo& group,
                                                               KeyExchange& keys,
                                                               const WaitBounds& bounds,
                                                               int most_direct,
                                                               const SplitRule& rule) {
  const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
  ASSIGN_OR_RETURN(std::unique_ptr<TcpMesh> mesh, TcpMesh::Open(group));
  const std::vector<int> first = FirstLinks(group, most_direct);
  ASSIGN_OR_RETURN(const KeyExchange::Selected addresses,
                   keys.Gather(kMeshKey, mesh->address(), first, deadline - Clock::Real().Now()));
  for (size_t i = 0; i < first.size(); ++i) mesh->Learn(first[i], addresses.values[i]);
  auto connections = std::make_shared<TcpLinks>(std::move(mesh), rule);
  RETURN_IF_ERROR(connections->Connect(first, deadline, bounds.cancellation));
  std::vector<int> all(group.size);
  std::iota(all.begin(), all.end(), 0);
  links::Peers peers(connections, std::move(all));
  if (group.size > most_direct) {
    RETURN_IF_ERROR(ShareAddresses(*connections, peers, deadline, bounds));
  }
  return std::make_unique<links::LinksCommunicator>(group.epoch, std::move(peers), most_direct);
}

class TcpBackend : public MeshBackend {
 public:
  TcpBackend(int most_direct, const SplitRule& rule) : most_direct_(most_direct), rule_(rule) {}

  absl::string_view name() const override { return kName; }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckGroup(group));
    if (group.size == 1) return links::MakeSoloCommunicator(kName, group);
    return ConnectMesh(group, keys, bounds);
  }

  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckGroup(group));
    auto connected = ConnectPeers(group, keys, bounds, most_direct_, rule_);
    if (connected.ok()) return connected;
    return ConnectError(kName, group, connected.status());
  }

 private:
  const int most_direct_;
  const SplitRule rule_;
};

}  // namespace

std::unique_ptr<MeshBackend> MakeTcpBackend() { return MakeSparseTcpBackend(kMostDirectRanks); }

std::unique_ptr<MeshBackend> MakeSparseTcpBackend(int most_direct, const SplitRule& rule) {
  return std::make_unique<TcpBackend>(most_direct, rule);
}

}  // namespace hvd::collectives::tcp
