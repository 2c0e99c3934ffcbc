#include "rendezvous/transport/peer_address.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/net/address.h"

namespace hvd::rendezvous::transport {
namespace {

// What precedes the 4 bytes of an IPv4 address in the 16 of IPv6.
constexpr absl::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

std::optional<PeerAddress> FromStorage(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    const absl::string_view bytes(reinterpret_cast<const char*>(&v4.sin_addr), sizeof(v4.sin_addr));
    return PeerAddress{absl::StrCat(kMapped, bytes), ntohs(v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return PeerAddress{
      std::string(reinterpret_cast<const char*>(&v6.sin6_addr), sizeof(v6.sin6_addr)),
      ntohs(v6.sin6_port)};
}

}  // namespace

std::optional<PeerAddress> PeerOfSocket(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  return FromStorage(address);
}

std::optional<PeerAddress> PeerOfCall(absl::string_view peer) {
  if (!absl::StartsWith(peer, "ipv4:") && !absl::StartsWith(peer, "ipv6:")) return std::nullopt;
  // The text is a URI: "[fe80::1%2]:80" has become "%5Bfe80::1%252%5D:80".
  const std::string text =
      absl::StrReplaceAll(peer.substr(5), {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  const net::HostPort parts = net::SplitHostPort(text);
  const std::string host = parts.host.substr(0, parts.host.find('%'));  // without the interface
  const absl::StatusOr<net::SocketAddress> address =
      net::ParseSocketAddress(net::JoinHostPort(host, parts.port));
  if (!address.ok()) return std::nullopt;
  return FromStorage(address->storage);
}

}  // namespace hvd::rendezvous::transport
