#include "base/net/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status UnavailableErrno(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(error)));
}

absl::StatusOr<AddressInfo> ParseAddress(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not a numeric address"));
  }
  return AddressInfo(found, &freeaddrinfo);
}

Fd NewSocket(int family) {
  return Fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

absl::Status SocketError(absl::string_view what, int error) {
  if (error != EMFILE && error != ENFILE) return UnavailableErrno(what, error);
  return absl::ResourceExhaustedError(absl::StrCat(what, ": ", strerror(error)));
}

absl::StatusOr<Fd> BindToAnyPort(const std::string& address, absl::string_view what) {
  ASSIGN_OR_RETURN(AddressInfo info, ParseAddress(address));
  Fd fd = NewSocket(info->ai_family);
  if (!fd.valid()) return SocketError(what, errno);
  if (bind(fd.get(), info->ai_addr, info->ai_addrlen) == 0) return fd;
  // A user's mistake (a wrong address or interface), unlike the others, which may pass.
  if (errno != EADDRNOTAVAIL) return UnavailableErrno(what, errno);
  return absl::InvalidArgumentError(absl::StrCat(address, " is not an address of this machine"));
}

absl::Status ConnectError(int error) {
  const std::string text = strerror(error);
  if (error == EMFILE || error == ENFILE) return absl::ResourceExhaustedError(text);
  if (error == ECONNRESET || error == ETIMEDOUT) return absl::AbortedError(text);
  return absl::UnavailableError(text);
}

bool SetOption(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

}  // namespace

absl::StatusOr<Fd> ListenOnAnyPort(const std::string& address) {
  const std::string what = absl::StrCat("can't listen on ", address);
  ASSIGN_OR_RETURN(Fd fd, BindToAnyPort(address, what));
  if (listen(fd.get(), SOMAXCONN) != 0) return UnavailableErrno(what, errno);
  return fd;
}

absl::StatusOr<Fd> ReserveAnyPort(const std::string& address) {
  return BindToAnyPort(address, absl::StrCat("can't reserve a port of ", address));
}

// The kernel lets several sockets share a port if all of them have SO_REUSEADDR and none listens.
// What counts is whether they have it when another one is bound. So a server can bind the reserved
// port, while the kernel does not choose it for others.
absl::Status ShareReservedPort(int reserved) {
  if (SetOption(reserved, SOL_SOCKET, SO_REUSEADDR, 1)) return absl::OkStatus();
  return UnavailableErrno("can't share a reserved port", errno);
}

absl::StatusOr<SocketAddress> LocalAddressOf(int fd) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  auto* const storage = reinterpret_cast<sockaddr*>(&address.storage);
  if (getsockname(fd, storage, &address.length) == 0) return address;
  return UnavailableErrno("can't read a socket's address", errno);
}

absl::StatusOr<int> PortOf(int fd) {
  ASSIGN_OR_RETURN(const SocketAddress address, LocalAddressOf(fd));
  if (address.storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

absl::StatusOr<Fd> Connect(const SocketAddress& address, absl::Time deadline,
                           const Cancellation* cancellation) {
  Fd fd = NewSocket(address.storage.ss_family);
  if (!fd.valid()) return ConnectError(errno);
  const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
  if (connect(fd.get(), to, address.length) == 0) return fd;
  // An immediate refusal is possible too, for example on the loopback interface, or without a
  // route.
  if (errno != EINPROGRESS) return ConnectError(errno);
  // The socket becomes writable when the attempt has ended; SO_ERROR then has its result.
  RETURN_IF_ERROR(AwaitReady(fd.get(), POLLOUT, deadline, cancellation));
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return ConnectError(error);
  return fd;
}

absl::StatusOr<Fd> ConnectTo(const std::string& address, int port, absl::Time deadline,
                             const Cancellation* cancellation) {
  ASSIGN_OR_RETURN(const SocketAddress to,
                   ParseSocketAddress(JoinHostPort(address, absl::StrCat(port))));
  absl::StatusOr<Fd> fd = Connect(to, deadline, cancellation);
  const bool cancelled = cancellation != nullptr && fd.status() == cancellation->status();
  if (fd.ok() || cancelled) return fd;
  return absl::Status(fd.status().code(), absl::StrCat("can't connect to ", address, " port ", port,
                                                       ": ", fd.status().message()));
}

bool IsSilence(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

absl::Status TuneForMessages(int fd) {
  // Two detections of a lost host: TCP_USER_TIMEOUT limits how long sent data may stay
  // unacknowledged; keep-alive probes cover an idle connection. TCP_NODELAY: messages are small and
  // must not wait for acknowledgements of earlier ones (Nagle's algorithm).
  constexpr int kUserTimeoutMilliseconds = 5000, kIdleSeconds = 5, kProbeSeconds = 1;
  if (SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
      SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds) &&
      SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
      SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds) &&
      SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds)) {
    return absl::OkStatus();
  }
  return UnavailableErrno("can't set a socket's options", errno);
}

absl::Status AwaitReady(int fd, short events, absl::Time deadline,
                        const Cancellation* cancellation) {
  // poll ignores an entry with the descriptor -1.
  pollfd fds[] = {{fd, events, 0}, {cancellation == nullptr ? -1 : cancellation->fd(), POLLIN, 0}};
  while (true) {
    const int ready = poll(fds, 2, TimeoutUntil(deadline));
    // The cancellation counts first. Errors of the socket (POLLERR, POLLHUP) are left to the
    // caller's next call on it.
    if (ready > 0) return fds[1].revents != 0 ? cancellation->status() : absl::OkStatus();
    if (ready == 0) return absl::DeadlineExceededError("no answer in time");
    if (errno != EINTR) return UnavailableErrno("poll", errno);
  }
}

int TimeoutUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left = std::max(deadline - Clock::Real().Now(), absl::ZeroDuration());
  // Rounded up: with the last fraction cut off, poll would return at once until the deadline, and
  // the caller would spin.
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
  return static_cast<int>(std::min<int64_t>(milliseconds, std::numeric_limits<int>::max()));
}

}  // namespace hvd::net
