// TCP sockets on numeric addresses, IPv4 or IPv6. All are non-blocking and close-on-exec.
#ifndef BASE_NET_TCP_SOCKET_H_
#define BASE_NET_TCP_SOCKET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "base/net/address.h"

namespace hvd::net {

// Errors:
//   - InvalidArgument: not a numeric address, or not one of this machine.
//   - Unavailable: the kernel refuses; says why.
absl::StatusOr<Fd> ListenOnAnyPort(const std::string& address);
absl::StatusOr<SocketAddress> LocalAddressOf(int fd);
absl::StatusOr<int> PortOf(int fd);

// Reserves a free port with a bound socket that does not listen: while it is open, nobody else can
// listen there.
// Errors: those of ListenOnAnyPort.
absl::StatusOr<Fd> ReserveAnyPort(const std::string& address);

// Lets other processes use a reserved port from now on: a server that requests it explicitly, with
// SO_REUSEADDR, can listen there. Of any user, since the kernel does not check that.
// Errors:
//   - Unavailable: the kernel refuses; says why.
absl::Status ShareReservedPort(int reserved);

// `cancellation` may be null.
// Errors:
//   - Unavailable: refused or unreachable.
//   - Aborted: the peer's kernel has reset the connection, e.g. because its backlog is full, or has
//     not answered in its time; another try may succeed.
//   - ResourceExhausted: too many open files.
//   - any other: as AwaitReady.
absl::StatusOr<Fd> Connect(const SocketAddress& address, absl::Time deadline,
                           const Cancellation* cancellation);

// Errors: those of Connect, with the address in the text, and
//   - InvalidArgument: not a numeric address.
absl::StatusOr<Fd> ConnectTo(const std::string& address, int port, absl::Time deadline,
                             const Cancellation* cancellation = nullptr);

// Whether an errno means that the network does not reach the peer's host any more.
bool IsSilence(int error);

// Sets socket options for low latency of small messages and early detection of a lost host.
// Errors:
//   - Unavailable: the kernel refuses; says why.
absl::Status TuneForMessages(int fd);

// Waits until `fd` is ready for `events` (poll's).
// Errors:
//   - DeadlineExceeded: it was not ready in time.
//   - Unavailable: poll failed.
//   - the cancellation's reason: the wait was cancelled.
absl::Status AwaitReady(int fd, short events, absl::Time deadline,
                        const Cancellation* cancellation = nullptr);

// The time until `deadline` in the form of poll and epoll_wait: milliseconds, rounded up; -1: no
// limit.
int TimeoutUntil(absl::Time deadline);

}  // namespace hvd::net

#endif  // BASE_NET_TCP_SOCKET_H_
