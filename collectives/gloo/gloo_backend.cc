#include "collectives/gloo/gloo_backend.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/gloo/gloo_communicator.h"
#include "collectives/gloo/gloo_glue.h"
#include "collectives/gloo/gloo_links.h"
#include "collectives/gloo/gloo_mesh.h"
#include "collectives/gloo/proof.h"
#include "collectives/gloo/solo_communicator.h"

namespace hvd {
namespace {

absl::Status CheckGroup(const GroupInfo& group) {
  RETURN_IF_ERROR(CheckRank(group));
  if (group.secret.empty()) return absl::InvalidArgumentError("the group has no secret");
  return absl::OkStatus();
}

// Sends everyone our proof and checks theirs. All are read before any is judged, so that a rank
// that is refused learns why.
absl::Status ExchangeProofs(const GroupInfo& group, const std::vector<std::string>& nonces,
                            GlooLinks& links, absl::Time deadline) {
  std::string own(group.size * kProofBytes, '\0'), theirs(group.size * kProofBytes, '\0');
  const auto subject = [&](int from, int to) {
    return ProofSubject{group.epoch, from, to, nonces[from], nonces[to]};
  };
  GlooLinks::Region send(links, &own[0], own.size()), receive(links, &theirs[0], theirs.size());
  for (int peer = 0; peer < group.size; ++peer) {
    if (peer == group.rank) continue;
    const size_t offset = peer * kProofBytes;
    own.replace(offset, kProofBytes, MakeProof(group.secret, subject(group.rank, peer)));
    RETURN_IF_ERROR(receive.Receive(peer, offset, kProofBytes));
    RETURN_IF_ERROR(send.Send(peer, offset, kProofBytes));
  }
  for (int peer = 0; peer < group.size; ++peer) {
    if (peer == group.rank) continue;
    RETURN_IF_ERROR(receive.AwaitReceived(peer, deadline));
    RETURN_IF_ERROR(send.AwaitSent(peer, deadline));
  }
  for (int peer = 0; peer < group.size; ++peer) {
    if (peer == group.rank) continue;
    const auto proof = absl::string_view(theirs).substr(peer * kProofBytes, kProofBytes);
    if (!CheckProof(group.secret, subject(peer, group.rank), proof)) {
      return absl::PermissionDeniedError(
          absl::StrCat("rank ", peer, " does not know this epoch's secret"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectPeers(const GroupInfo& group,
                                                               KeyExchange& keys,
                                                               const WaitBounds& bounds) {
  const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
  ScopedSigpipeBlock no_sigpipe;  // Gloo's thread and ours inherit it
  ASSIGN_OR_RETURN(std::unique_ptr<GlooMesh> mesh,
                   ConnectMesh(group, keys, deadline, bounds.cancellation));
  const std::vector<std::string> nonces = mesh->nonces;
  auto links = std::make_shared<GlooLinks>(std::move(mesh), group.rank, group.size);
  RETURN_IF_ERROR(links->Start());
  RETURN_IF_ERROR(ExchangeProofs(group, nonces, *links, deadline));
  std::vector<int> all(group.size);
  std::iota(all.begin(), all.end(), 0);
  return std::make_unique<GlooCommunicator>(group.epoch,
                                            GlooPeers(std::move(links), std::move(all)));
}

class GlooBackend : public MeshBackend {
 public:
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
    auto connected = ConnectPeers(group, keys, bounds);
    if (connected.ok()) return connected;
    return absl::Status(
        connected.status().code(),
        absl::StrCat("connecting (gloo, rank ", group.rank, " of ", group.size, ", epoch ",
                     group.epoch.value(), "): ", connected.status().message()));
  }
};

}  // namespace

std::unique_ptr<MeshBackend> MakeGlooBackend() { return std::make_unique<GlooBackend>(); }

}  // namespace hvd
