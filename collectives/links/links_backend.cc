#include "collectives/links/links_backend.h"

#include "base/status_macros.h"
#include "collectives/links/solo_communicator.h"
#include "collectives/rank_text.h"

namespace hvd::collectives::links {
namespace {

absl::Status CheckGroup(const GroupInfo& group) {
  RETURN_IF_ERROR(CheckRank(group));
  if (group.secret.empty()) return absl::InvalidArgumentError("the group has no secret");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> LinksBackend::Connect(const GroupInfo& group,
                                                                    KeyExchange& keys,
                                                                    const WaitBounds& bounds) {
  RETURN_IF_ERROR(CheckGroup(group));
  RETURN_IF_ERROR(Check(group));
  if (group.size == 1) return MakeSoloCommunicator(name_, group);
  return ConnectMesh(group, keys, bounds);
}

absl::StatusOr<std::unique_ptr<MeshCommunicator>> LinksBackend::ConnectMesh(
    const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) {
  RETURN_IF_ERROR(CheckGroup(group));
  RETURN_IF_ERROR(Check(group));
  auto connected = ConnectPeers(group, keys, bounds);
  if (connected.ok()) return connected;
  return ConnectError(name_, group, connected.status());
}

}  // namespace hvd::collectives::links
