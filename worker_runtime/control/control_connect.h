// The connection setup of a control channel's links.
#ifndef WORKER_RUNTIME_CONTROL_CONTROL_CONNECT_H_
#define WORKER_RUNTIME_CONTROL_CONTROL_CONNECT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/net/wire.h"
#include "collectives/types.h"

namespace hvd::worker_runtime::control {

// Rank 0: waits for all members; returns their wires by rank, none at 0. A connection that can't
// prove to be a member's is dropped, and the wait goes on; strangers, however many, don't take a
// member's room.
// Errors:
//   - DeadlineExceeded: names the ranks that have not come.
//   - The cancellation's status: bounds.cancellation was cancelled.
//   - Unavailable: the kernel refuses.
absl::StatusOr<std::vector<net::Wire>> AcceptMembers(const collectives::GroupInfo& group,
                                                     int listener, const WaitBounds& bounds);

// The other ranks. If rank 0 hangs up, retries within the bounds.
// Errors: those of ControlChannel::Connect.
absl::StatusOr<net::Wire> ConnectToRoot(const collectives::GroupInfo& group,
                                        const std::string& address, int port,
                                        const WaitBounds& bounds);

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_CONTROL_CONNECT_H_
