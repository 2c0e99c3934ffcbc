#include "collectives/gloo/gloo_backend.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/cancellation_watch.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/gloo/gloo_communicator.h"
#include "collectives/gloo/gloo_links.h"
#include "collectives/gloo/gloo_mesh.h"
#include "collectives/gloo/link/gloo_glue.h"
#include "collectives/gloo/link/link_address.h"
#include "collectives/gloo/neighbours.h"
#include "collectives/gloo/solo_communicator.h"
#include "collectives/rank_text.h"

namespace hvd::collectives::gloo {
namespace {

constexpr char kMeshKey[] = "gloo-mesh";

absl::Status CheckGroup(const GroupInfo& group) {
  RETURN_IF_ERROR(CheckRank(group));
  if (group.secret.empty()) return absl::InvalidArgumentError("the group has no secret");
  return absl::OkStatus();
}

// The ranks that this rank is linked with from the start. In a large group these links form a tree,
// so that a failure spreads to all ranks, whichever operations have linked further ranks.
std::vector<int> FirstLinks(const GroupInfo& group, int most_direct) {
  if (group.size > most_direct) return BinomialTree(group.rank, group.size, 0).Neighbours();
  std::vector<int> all(group.size);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Distributes the addresses of all ranks over the first links. So the daemon, which serves all
// ranks at once, has to send each rank only the addresses of its first links, not those of the
// group.
absl::Status ShareAddresses(const GlooPeers& peers, absl::Time deadline, const WaitBounds& bounds) {
  GlooLinks& links = *peers.links();
  std::string all(peers.size() * link::kLinkAddressBytes, '\0');
  all.replace(peers.rank() * link::kLinkAddressBytes, link::kLinkAddressBytes,
              links.mesh().address());
  Scratch scratch;
  const CancellationWatch watch(bounds.cancellation,
                                [&](const absl::Status& why) { links.Break(why, links.rank()); });
  const absl::Status shared =
      TreeAllGather(Phase{peers, scratch, deadline}, &all[0], link::kLinkAddressBytes);
  if (!shared.ok()) {
    links.Break(shared, links.rank());
    return links.status();
  }
  for (int rank = 0; rank < peers.size(); ++rank) {
    links.mesh().Learn(rank, all.substr(rank * link::kLinkAddressBytes, link::kLinkAddressBytes));
  }
  return absl::OkStatus();
}

// Steps: start to listen, before any peer can know the address; get the addresses of the first
// links through the key exchange; connect them; in a large group get all other addresses over them.
absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectPeers(const GroupInfo& group,
                                                               KeyExchange& keys,
                                                               const WaitBounds& bounds,
                                                               int most_direct) {
  const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
  link::ScopedSigpipeBlock no_sigpipe;  // the threads that are started here inherit the mask
  ASSIGN_OR_RETURN(std::unique_ptr<GlooMesh> mesh, GlooMesh::Open(group));
  const std::vector<int> first = FirstLinks(group, most_direct);
  ASSIGN_OR_RETURN(const KeyExchange::Selected addresses,
                   keys.Gather(kMeshKey, mesh->address(), first, deadline - Clock::Real().Now()));
  for (size_t i = 0; i < first.size(); ++i) mesh->Learn(first[i], addresses.values[i]);
  auto links = std::make_shared<GlooLinks>(std::move(mesh), group.rank, group.size);
  RETURN_IF_ERROR(links->Connect(first, deadline, bounds.cancellation));
  std::vector<int> all(group.size);
  std::iota(all.begin(), all.end(), 0);
  GlooPeers peers(links, std::move(all));
  if (group.size > most_direct) RETURN_IF_ERROR(ShareAddresses(peers, deadline, bounds));
  return std::make_unique<GlooCommunicator>(group.epoch, std::move(peers), most_direct);
}

class GlooBackend : public MeshBackend {
 public:
  explicit GlooBackend(int most_direct) : most_direct_(most_direct) {}

  absl::string_view name() const override { return "gloo"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckGroup(group));
    if (group.size == 1) return MakeSoloCommunicator(group);
    return ConnectMesh(group, keys, bounds);
  }

  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckGroup(group));
    auto connected = ConnectPeers(group, keys, bounds, most_direct_);
    if (connected.ok()) return connected;
    return ConnectError("gloo", group, connected.status());
  }

 private:
  const int most_direct_;
};

}  // namespace

std::unique_ptr<MeshBackend> MakeGlooBackend() { return MakeSparseGlooBackend(kMostDirectRanks); }

std::unique_ptr<MeshBackend> MakeSparseGlooBackend(int most_direct) {
  return std::make_unique<GlooBackend>(most_direct);
}

}  // namespace hvd::collectives::gloo
