#include "collectives/device_communicator.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/communicator_key_exchange.h"

namespace hvd {

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectDevices(DeviceBackend& backend,
                                                                   const GroupInfo& group,
                                                                   int device, Communicator& host,
                                                                   const WaitBounds& bounds,
                                                                   std::string* why_staged) {
  why_staged->clear();
  CommunicatorKeyExchange keys(host);
  auto connected = backend.Connect(group, device, keys, bounds);
  if (!absl::IsUnimplemented(connected.status())) return connected;
  auto staged = backend.Stage(device, host);
  const std::string problem = staged.ok() ? "" : std::string(staged.status().message());
  ASSIGN_OR_RETURN(const std::vector<std::string> problems,
                   keys.AllGather("staged", problem, bounds.timeout));
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    return absl::UnimplementedError(
        absl::StrCat("rank ", rank, " can't use its device: ", problems[rank]));
  }
  *why_staged = std::string(connected.status().message());
  return staged;
}

}  // namespace hvd
