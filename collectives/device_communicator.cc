#include "collectives/device_communicator.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/communicator_key_exchange.h"

namespace hvd::collectives {

namespace {

using Connected = absl::StatusOr<std::unique_ptr<DeviceCommunicator>>;

// Additional time for the exchange of the results: a rank that has failed at once has to wait until
// the other ranks' attempts have failed, too, up to their timeout.
constexpr absl::Duration kGivingUp = absl::Seconds(15);

// Exchanges the ranks' problems; returns that of the first rank that has one, the same on all
// ranks; empty: there is none. `own` is this rank's, and `said_by` the prefix for its message.
absl::StatusOr<std::string> FirstProblem(KeyExchange& keys, absl::string_view what,
                                         absl::string_view said_by, const absl::Status& own,
                                         absl::Duration timeout) {
  const std::string problem = own.ok() ? "" : absl::StrCat(said_by, own.message());
  ASSIGN_OR_RETURN(const std::vector<std::string> problems, keys.AllGather(what, problem, timeout));
  const auto first = std::find_if(problems.begin(), problems.end(),
                                  [](const std::string& text) { return !text.empty(); });
  return first == problems.end() ? std::string() : *first;
}

}  // namespace

Connected ConnectDevices(DeviceBackend& backend, const GroupInfo& group, int device,
                         Communicator& host, const WaitBounds& bounds, std::string* why_staged) {
  why_staged->clear();
  CommunicatorKeyExchange keys(host);
  // Ranks whose communicator has a mailbox share memory, so no data goes over the network.
  const bool encrypts = group.tls != nullptr && host.mailbox() == nullptr;
  Connected connected =
      encrypts ? absl::UnimplementedError("--encrypt-data is set, and NCCL does not encrypt")
               : backend.Connect(group, device, keys, bounds);
  // All ranks have to agree on the outcome, so each publishes its own over `host`, even if it has
  // failed. Only PermissionDenied and a cancellation end the call before that.
  if (absl::IsPermissionDenied(connected.status())) return connected;
  if (bounds.cancellation != nullptr) RETURN_IF_ERROR(bounds.cancellation->status());
  ASSIGN_OR_RETURN(
      const std::string problem,
      FirstProblem(keys, "connected", "", connected.status(), bounds.timeout + kGivingUp));
  if (problem.empty()) return connected;
  if (connected.ok()) (*connected)->Abort("another rank could not connect its device");
  connected = backend.Stage(device, host);
  const std::string self = absl::StrCat("rank ", group.rank, " can't use its device: ");
  ASSIGN_OR_RETURN(const std::string refusal,
                   FirstProblem(keys, "staged", self, connected.status(), bounds.timeout));
  if (!refusal.empty()) {
    return absl::UnimplementedError(absl::StrCat(refusal, " (", problem, ")"));
  }
  *why_staged = problem;
  return connected;
}

}  // namespace hvd::collectives
