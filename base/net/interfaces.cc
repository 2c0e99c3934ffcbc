#include "base/net/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fd.h"
#include "base/net/address.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

struct Cidr {
  std::string bytes;
  int prefix = 0;
};

absl::StatusOr<Cidr> ParseCidr(const std::string& text) {
  const size_t slash = text.find('/');
  Cidr cidr;
  cidr.bytes = AddressBytes(text.substr(0, slash));
  const std::string prefix = text.substr(slash + 1);
  const bool is_number =
      !prefix.empty() && prefix.find_first_not_of("0123456789") == std::string::npos;
  if (cidr.bytes.empty() || !is_number || !absl::SimpleAtoi(prefix, &cidr.prefix) ||
      cidr.prefix > static_cast<int>(cidr.bytes.size()) * 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("network '", text, "' is not of the form 10.0.0.0/8"));
  }
  return cidr;
}

bool InCidr(const std::string& address, const Cidr& cidr) {
  const std::string bytes = AddressBytes(address);
  // An IPv4 network contains no IPv6 address, not even a mapped one: interfaces do not list those.
  if (bytes.size() != cidr.bytes.size()) return false;
  for (int bit = 0; bit < cidr.prefix; ++bit) {
    const int mask = 0x80 >> (bit % 8);
    if ((bytes[bit / 8] & mask) != (cidr.bytes[bit / 8] & mask)) return false;
  }
  return true;
}

// IPv6 link-local addresses are only valid together with an interface, whose name differs between
// hosts.
bool IsUsable(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) return true;
  if (address->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::string Numeric(const sockaddr* address) {
  SocketAddress copy;
  copy.length = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  memcpy(&copy.storage, address, copy.length);
  return NumericHost(copy);
}

}  // namespace

absl::StatusOr<std::vector<InterfaceAddress>> ListInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return absl::InternalError(
        absl::StrCat("can't list this machine's network interfaces: ", std::strerror(errno)));
  }
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<InterfaceAddress> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!IsUsable(entry->ifa_addr)) continue;
    result.push_back({entry->ifa_name, Numeric(entry->ifa_addr),
                      entry->ifa_addr->sa_family == AF_INET6,
                      (entry->ifa_flags & IFF_LOOPBACK) != 0,
                      (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0});
  }
  return result;
}

absl::StatusOr<std::string> SourceAddressTo(const std::string& peer) {
  ASSIGN_OR_RETURN(const SocketAddress to, ParseSocketAddress(peer));
  // UDP: connect only looks up the route.
  const Fd fd(socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress own;
  own.length = sizeof(own.storage);
  if (!fd.valid() ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.length) != 0) {
    return absl::UnavailableError(absl::StrCat("no route to ", peer, ": ", std::strerror(errno)));
  }
  return NumericHost(own);
}

std::string InterfaceOf(const std::string& address, const std::vector<InterfaceAddress>& own) {
  for (const InterfaceAddress& candidate : own) {
    if (candidate.address == address) return candidate.interface;
  }
  return "";
}

bool IsCidr(const std::string& network) { return absl::StrContains(network, '/'); }

absl::Status CheckNetworks(const std::vector<std::string>& networks) {
  for (const std::string& network : networks) {
    if (network.empty()) return absl::InvalidArgumentError("a network interface's name is empty");
    if (IsCidr(network)) RETURN_IF_ERROR(ParseCidr(network).status());
  }
  return absl::OkStatus();
}

bool InNetworks(const InterfaceAddress& address, const std::vector<std::string>& networks) {
  if (networks.empty()) return true;
  return std::any_of(networks.begin(), networks.end(), [&](const std::string& network) {
    if (!IsCidr(network)) return network == address.interface;
    const absl::StatusOr<Cidr> cidr = ParseCidr(network);
    return cidr.ok() && InCidr(address.address, *cidr);
  });
}

absl::StatusOr<std::string> ChooseAddress(const std::vector<std::string>& networks,
                                          const std::vector<InterfaceAddress>& own) {
  RETURN_IF_ERROR(CheckNetworks(networks));
  for (const std::string& network : networks) {
    for (const InterfaceAddress& candidate : own) {
      // The order of the networks is the user's preference, so it counts before that of the
      // interfaces.
      if (candidate.up && InNetworks(candidate, {network})) return candidate.address;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no address in ", absl::StrJoin(networks, ","), "; it has ",
                   absl::StrJoin(own, ", ", [](std::string* out, const InterfaceAddress& address) {
                     absl::StrAppend(out, address.interface, " ", address.address);
                   })));
}

}  // namespace hvd::net
