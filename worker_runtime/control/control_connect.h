// The connection setup of the TCP control channel.
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

// Rank 0: waits until all members have connected to group.port; returns their wires by rank (the
// one of rank 0 is invalid). See collectives::peer::PeerPort.
// Errors:
//   - DeadlineExceeded: not all members have connected; names the missing ranks.
//   - The cancellation's status: bounds.cancellation was cancelled.
//   - Unavailable: a system call has failed.
//   - ResourceExhausted: too many open files.
absl::StatusOr<std::vector<net::Wire>> AcceptMembers(const collectives::GroupInfo& group,
                                                     const WaitBounds& bounds);

// Other ranks: connects to the port of rank 0. If rank 0 hangs up, retries within the bounds.
// Errors: those of ControlChannel::Connect.
absl::StatusOr<net::Wire> ConnectToRoot(const collectives::GroupInfo& group,
                                        const std::string& address, int port,
                                        const WaitBounds& bounds);

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_CONTROL_CONNECT_H_
