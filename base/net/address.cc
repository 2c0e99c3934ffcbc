#include "base/net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

// The bytes of a numeric address: 4, 16, or none if it is not one.
std::string AddressBytes(const std::string& address) {
  char bytes[sizeof(in6_addr)];
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1) return std::string(bytes, 4);
  if (inet_pton(AF_INET6, address.c_str(), bytes) == 1) return std::string(bytes, 16);
  return "";
}

bool SamePrefix(const std::string& a, const std::string& b, int bits) {
  if (a.size() != b.size()) return false;
  const int whole = bits / 8;
  if (a.compare(0, whole, b, 0, whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const int differing = static_cast<uint8_t>(a[whole]) ^ static_cast<uint8_t>(b[whole]);
  return differing >> (8 - bits % 8) == 0;
}

struct Cidr {
  std::string bytes;
  int bits = 0;
};

absl::StatusOr<Cidr> ParseCidr(const std::string& text) {
  const size_t slash = text.find('/');
  Cidr cidr;
  cidr.bytes = AddressBytes(text.substr(0, slash));
  if (cidr.bytes.empty() || !absl::SimpleAtoi(text.substr(slash + 1), &cidr.bits) ||
      cidr.bits < 0 || cidr.bits > static_cast<int>(cidr.bytes.size()) * 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a network: ", text, " (wanted is e.g. 10.0.0.0/8)"));
  }
  return cidr;
}

}  // namespace

HostPort SplitHostPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || absl::EndsWith(address, "]")) {
    return {std::string(address), ""};
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return {std::string(host), std::string(address.substr(colon + 1))};
}

absl::StatusOr<SocketAddress> ParseSocketAddress(const std::string& address) {
  const HostPort parts = SplitHostPort(address);
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (parts.port.empty() ||
      getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &list) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("not a numeric address:port: ", address));
  }
  SocketAddress result;
  memcpy(&result.storage, list->ai_addr, list->ai_addrlen);
  result.length = list->ai_addrlen;
  freeaddrinfo(list);
  return result;
}

std::string NumericHost(const SocketAddress& address) {
  char host[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length, host,
              sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::vector<OwnAddress> OwnAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &freeifaddrs);
  std::vector<OwnAddress> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || !(entry->ifa_flags & IFF_UP)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    memcpy(&address.storage, entry->ifa_addr, address.length);
    result.push_back({entry->ifa_name, NumericHost(address)});
  }
  return result;
}

std::string InterfaceOf(const std::string& address, const std::vector<OwnAddress>& own) {
  for (const OwnAddress& candidate : own) {
    if (candidate.address == address) return candidate.interface;
  }
  return "";
}

absl::StatusOr<std::string> ChooseAddress(const std::vector<std::string>& networks,
                                          const std::vector<OwnAddress>& own) {
  for (const std::string& network : networks) {
    const bool is_cidr = absl::StrContains(network, '/');
    Cidr cidr;
    if (is_cidr) {
      ASSIGN_OR_RETURN(cidr, ParseCidr(network));
    }
    for (const OwnAddress& candidate : own) {
      const bool matches = is_cidr
                               ? SamePrefix(cidr.bytes, AddressBytes(candidate.address), cidr.bits)
                               : candidate.interface == network;
      if (matches) return candidate.address;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no address in ", absl::StrJoin(networks, ","), "; it has ",
                   absl::StrJoin(own, ", ", [](std::string* out, const OwnAddress& address) {
                     absl::StrAppend(out, address.interface, " ", address.address);
                   })));
}

}  // namespace hvd::net
