#include "base/net/peer_source.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::net {
namespace {

constexpr size_t kNetworkBytes = 8;
constexpr size_t kV4At = 12;  // in an IPv4-mapped IPv6 address

// Every user of this machine may connect from any address of 127.0.0.0/8: all of them are one
// source. But for 127.0.0.1, from which everybody else connects.
std::string V4Source(const char* bytes) {
  in_addr address = {};
  std::memcpy(&address, bytes, sizeof(address));
  const uint32_t number = ntohl(address.s_addr);
  if (number >> 24 == IN_LOOPBACKNET && number != INADDR_LOOPBACK)
    address.s_addr = htonl(0x7f000000);
  return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
}

std::string V6Source(const in6_addr& address) {
  const char* const bytes = reinterpret_cast<const char*>(&address);
  if (IN6_IS_ADDR_V4MAPPED(&address)) return V4Source(bytes + kV4At);
  return std::string(bytes, kNetworkBytes);
}

std::string ProcessSource(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "";
  return absl::StrCat("process ", peer.pid);
}

}  // namespace

std::string PeerSource(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  switch (address.ss_family) {
    case AF_INET: {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
      return V4Source(reinterpret_cast<const char*>(&v4.sin_addr));
    }
    case AF_INET6:
      return V6Source(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
    case AF_UNIX:
      return ProcessSource(socket);
    default:
      return "";
  }
}

}  // namespace hvd::net
