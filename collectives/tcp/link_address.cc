#include "collectives/tcp/link_address.h"

#include <netinet/in.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::collectives::tcp {
namespace {

// The prefix of an IPv4-mapped IPv6 address, ::ffff:0:0/96.
constexpr absl::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

std::string BytesOf(const void* data, size_t bytes) {
  return std::string(static_cast<const char*>(data), bytes);
}

}  // namespace

// Address and port are copied in network byte order, so the form is the same on all machines.
std::string LinkAddressOf(const net::SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    return absl::StrCat(kMapped, BytesOf(&v4.sin_addr, 4), BytesOf(&v4.sin_port, 2));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return absl::StrCat(BytesOf(&v6.sin6_addr, 16), BytesOf(&v6.sin6_port, 2));
}

absl::StatusOr<net::SocketAddress> ParseLinkAddress(absl::string_view bytes) {
  // The entry comes from another rank through the daemon, which does not check it.
  if (bytes.size() != kLinkAddressBytes) {
    return absl::InvalidArgumentError("its entry in the key exchange is malformed");
  }
  net::SocketAddress address;
  if (bytes.substr(0, kMapped.size()) == kMapped) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
    v4.sin_family = AF_INET;
    memcpy(&v4.sin_addr, &bytes[kMapped.size()], 4);
    memcpy(&v4.sin_port, &bytes[16], 2);
    address.length = sizeof(v4);
    return address;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  v6.sin6_family = AF_INET6;
  memcpy(&v6.sin6_addr, &bytes[0], 16);
  memcpy(&v6.sin6_port, &bytes[16], 2);
  address.length = sizeof(v6);
  return address;
}

}  // namespace hvd::collectives::tcp
