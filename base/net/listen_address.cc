#include "base/net/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hvd::net {
namespace {

bool ParsePort(absl::string_view text, int& port) {
  return !text.empty() && text.size() <= 5 && absl::ascii_isdigit(text[0]) &&
         absl::SimpleAtoi(text, &port) && port <= 65535;
}

bool FillV4(const std::string& text, int port, ListenAddress& result) {
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&result.address);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) != 1) return false;
  v4->sin_family = AF_INET;
  v4->sin_port = htons(static_cast<uint16_t>(port));
  result.length = sizeof(*v4);
  return true;
}

bool FillV6(const std::string& text, int port, ListenAddress& result) {
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&result.address);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  const std::string inner = text.substr(1, text.size() - 2);
  if (inet_pton(AF_INET6, inner.c_str(), &v6->sin6_addr) != 1) return false;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<uint16_t>(port));
  result.length = sizeof(*v6);
  return true;
}

// None: errno says why.
Fd TryToListen(const ListenAddress& address) {
  const int family = address.address.ss_family;
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Or connections that were closed a moment ago would count as listeners.
  const int reuse = 1;
  // Whatever net.ipv6.bindv6only says: [::] means both.
  const int only_v6 = 0;
  if (fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)) == 0 &&
      (family != AF_INET6 ||
       setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6)) == 0) &&
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) == 0 &&
      listen(fd.get(), SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

}  // namespace

std::string ListenAddress::WithPort(int chosen) const { return absl::StrCat(text, ":", chosen); }

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  ListenAddress result;
  if (colon != absl::string_view::npos && ParsePort(text.substr(colon + 1), result.port)) {
    result.text = std::string(text.substr(0, colon));
    if (FillV4(result.text, result.port, result) || FillV6(result.text, result.port, result)) {
      return result;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("can't listen on \"", text,
                   "\": not a numeric address with a port, as 10.0.0.1:0 or [::1]:0"));
}

absl::StatusOr<Fd> ListenOn(const ListenAddress& address) {
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address.address);
  if (v4->sin_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY)) {
    ListenAddress both;
    FillV6("[::]", address.port, both);
    Fd fd = TryToListen(both);
    if (fd.valid()) return fd;
  }
  Fd fd = TryToListen(address);
  if (fd.valid()) return fd;
  return absl::UnavailableError(
      absl::StrCat("can't listen on ", address.WithPort(address.port), ": ", strerror(errno)));
}

int BoundPort(int fd) {
  sockaddr_storage bound = {};
  socklen_t length = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  return ntohs(bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&bound)->sin_port
                                          : reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port);
}

}  // namespace hvd::net
