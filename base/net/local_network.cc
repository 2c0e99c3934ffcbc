#include "base/net/local_network.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

// An address as its bytes: 4 or 16, or none if it is not numeric.
std::string AddressBytes(const std::string& text) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) {
    return std::string(reinterpret_cast<char*>(bytes), 4);
  }
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) {
    return std::string(reinterpret_cast<char*>(bytes), 16);
  }
  return "";
}

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

bool InCidr(const std::string& bytes, const Cidr& cidr) {
  if (bytes.size() != cidr.bytes.size()) return false;
  for (int bit = 0; bit < cidr.prefix; ++bit) {
    const int mask = 0x80 >> (bit % 8);
    if ((bytes[bit / 8] & mask) != (cidr.bytes[bit / 8] & mask)) return false;
  }
  return true;
}

bool IsCidr(const std::string& network) { return absl::StrContains(network, '/'); }

bool IsLoopbackAddress(const std::string& text) {
  const std::string bytes = AddressBytes(text);
  if (bytes.size() == 4) return bytes[0] == 127;
  return bytes.size() == 16 && bytes == AddressBytes("::1");
}

bool IsOwnAddress(const std::string& text, const std::vector<InterfaceAddress>& interfaces) {
  if (IsLoopbackAddress(text)) return true;
  const std::string bytes = AddressBytes(text);
  return !bytes.empty() &&
         std::any_of(interfaces.begin(), interfaces.end(), [&](const InterfaceAddress& own) {
           return AddressBytes(own.address) == bytes;
         });
}

std::string InterfaceNames(const std::vector<InterfaceAddress>& interfaces) {
  std::set<std::string> names;
  for (const InterfaceAddress& own : interfaces) names.insert(own.interface);
  return absl::StrJoin(names, ", ");
}

absl::Status CheckInterfacesExist(const std::vector<InterfaceAddress>& interfaces,
                                  const std::vector<std::string>& networks) {
  for (const std::string& network : networks) {
    const bool known = IsCidr(network) || std::any_of(interfaces.begin(), interfaces.end(),
                                                      [&](const InterfaceAddress& own) {
                                                        return own.interface == network;
                                                      });
    if (known) continue;
    return absl::InvalidArgumentError(absl::StrCat("unknown network interface '", network,
                                                   "'; this machine has ",
                                                   InterfaceNames(interfaces)));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLocalHost(const std::string& host, const std::string& own_name,
                 const std::vector<InterfaceAddress>& interfaces, const NameTable& names) {
  if (host == "localhost" || host == own_name || IsOwnAddress(host, interfaces)) return true;
  const auto found = names.find(host);
  if (found == names.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](const std::string& address) { return IsOwnAddress(address, interfaces); });
}

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
    return cidr.ok() && InCidr(AddressBytes(address.address), *cidr);
  });
}

absl::StatusOr<std::vector<std::string>> ListenAddresses(
    const std::vector<InterfaceAddress>& interfaces, const std::vector<std::string>& networks,
    bool all_local, const std::vector<std::string>& preferred) {
  if (all_local) {
    RETURN_IF_ERROR(CheckInterfacesExist(interfaces, networks));
    return std::vector<std::string>{"127.0.0.1:0"};
  }
  std::vector<InterfaceAddress> usable;
  for (const InterfaceAddress& own : interfaces) {
    if (own.up && !own.loopback && InNetworks(own, networks)) usable.push_back(own);
  }
  if (usable.empty()) {
    // Names need not exist here as long as one address fits: hosts may differ.
    RETURN_IF_ERROR(CheckInterfacesExist(interfaces, networks));
    return absl::InvalidArgumentError(
        absl::StrCat("no address of this machine is left for other hosts to reach it",
                     networks.empty() ? "" : " within ", absl::StrJoin(networks, ","), "; it has ",
                     InterfaceNames(interfaces)));
  }
  std::stable_partition(usable.begin(), usable.end(), [&](const InterfaceAddress& own) {
    return std::find(preferred.begin(), preferred.end(), own.address) != preferred.end();
  });
  std::vector<std::string> result;
  for (const InterfaceAddress& own : usable) {
    result.push_back(own.ipv6 ? absl::StrCat("[", own.address, "]:0")
                              : absl::StrCat(own.address, ":0"));
  }
  return result;
}

}  // namespace hvd::net
