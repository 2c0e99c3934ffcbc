#include "base/net/listen_address.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/names.h"

namespace hvd::net {
namespace {

// Returns an invalid Fd after an error, with the reason in errno.
Fd TryToListen(const ListenAddress& address) {
  const int family = address.address.storage.ss_family;
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Without SO_REUSEADDR, recently closed connections (TIME_WAIT) would keep the port in use.
  const int reuse = 1;
  // [::] accepts IPv4 as well, regardless of net.ipv6.bindv6only.
  const int only_v6 = 0;
  if (fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)) == 0 &&
      (family != AF_INET6 ||
       setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6)) == 0) &&
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.address.storage),
           address.address.length) == 0 &&
      listen(fd.get(), SOMAXCONN) == 0) {
    return fd;
  }
  // close() may change errno.
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

}  // namespace

std::string ListenAddress::WithPort(int chosen) const {
  return JoinHostPort(host, absl::StrCat(chosen));
}

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const absl::StatusOr<SocketAddress> address = ParseSocketAddress(text);
  if (!address.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't listen on ", text::Quoted(text),
                     ": not a numeric address with a port, as 10.0.0.1:0 or [::1]:0"));
  }
  HostPort parts = SplitHostPort(text);
  return ListenAddress{std::move(parts.host), std::move(parts.port), *address};
}

absl::StatusOr<Fd> ListenOn(const ListenAddress& address) {
  // A socket on [::] accepts both versions. Without IPv6 it can't be made, and 0.0.0.0 is used.
  if (address.host == "0.0.0.0") {
    Fd fd = TryToListen(*ParseListenAddress(JoinHostPort("::", address.port)));
    if (fd.valid()) return fd;
  }
  Fd fd = TryToListen(address);
  if (fd.valid()) return fd;
  const char* remedy = errno == EADDRINUSE ? "; choose another port" : "";
  return absl::UnavailableError(absl::StrCat(
      "can't listen on ", JoinHostPort(address.host, address.port), ": ", strerror(errno), remedy));
}

int BoundPort(int fd) {
  // Asked of the kernel, since the requested port may have been 0.
  sockaddr_storage bound = {};
  socklen_t length = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  return ntohs(bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&bound)->sin_port
                                          : reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port);
}

}  // namespace hvd::net
