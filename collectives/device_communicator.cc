#include "collectives/device_communicator.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/communicator_key_exchange.h"

namespace hvd::collectives {

namespace {

using Connected = absl::StatusOr<std::unique_ptr<DeviceCommunicator>>;

// A rank that fails at once must wait for the others, which still try, and for their timeout.
constexpr absl::Duration kGivingUp = absl::Seconds(15);

// The problem of the first rank that has one; empty: there is none. `said_by` precedes this rank's.
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
  // Ranks with a mailbox share memory, and nothing goes over the network.
  const bool encrypts = group.tls != nullptr && host.mailbox() == nullptr;
  Connected connected = encrypts
                            ? absl::UnimplementedError("--encrypt-data, and NCCL does not encrypt")
                            : backend.Connect(group, device, keys, bounds);
  if (absl::IsPermissionDenied(connected.status())) return connected;
  if (bounds.cancellation != nullptr) RETURN_IF_ERROR(bounds.cancellation->status());
  ASSIGN_OR_RETURN(
      const std::string problem,
      FirstProblem(keys, "connected", "", connected.status(), bounds.timeout + kGivingUp));
  if (problem.empty()) return connected;
  if (connected.ok()) (*connected)->Abort("others could not connect");
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
