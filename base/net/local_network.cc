#include "base/net/local_network.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/address.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

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

bool IsLoopbackAddress(const std::string& text) {
  std::string bytes = AddressBytes(text);
  const std::string mapped = AddressBytes("::ffff:0.0.0.0").substr(0, 12);
  if (bytes.size() == 16 && absl::StartsWith(bytes, mapped)) bytes.erase(0, mapped.size());
  // All of 127.0.0.0/8: Debian's /etc/hosts maps the host's own name to 127.0.1.1.
  if (bytes.size() == 4) return bytes[0] == 127;
  return bytes.size() == 16 && bytes == AddressBytes("::1");
}

bool IsLocalHost(const std::string& host, const std::string& own_name,
                 const std::vector<InterfaceAddress>& interfaces, const NameTable& names) {
  if (host == "localhost" || host == own_name || IsOwnAddress(host, interfaces)) return true;
  const auto found = names.find(host);
  if (found == names.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](const std::string& address) { return IsOwnAddress(address, interfaces); });
}

absl::StatusOr<std::vector<std::string>> ListenAddresses(
    const std::vector<InterfaceAddress>& interfaces, const std::vector<std::string>& networks,
    bool all_local, const std::vector<std::string>& preferred) {
  if (all_local) {
    RETURN_IF_ERROR(CheckInterfacesExist(interfaces, networks));
    // Not visible to other hosts at all, which is safer than any list of interfaces.
    return std::vector<std::string>{"127.0.0.1:0"};
  }
  std::vector<InterfaceAddress> usable;
  for (const InterfaceAddress& own : interfaces) {
    if (own.up && !own.loopback && InNetworks(own, networks)) usable.push_back(own);
  }
  if (usable.empty()) {
    // Unknown interface names are an error only if no address matches: hosts may have different
    // interfaces, so the list may contain names of other hosts.
    RETURN_IF_ERROR(CheckInterfacesExist(interfaces, networks));
    return absl::InvalidArgumentError(
        absl::StrCat("no address of this machine is left for other hosts to reach it",
                     networks.empty() ? "" : " within ", absl::StrJoin(networks, ","), "; it has ",
                     InterfaceNames(interfaces)));
  }
  // Only the order changes: a preferred address is tried first, and the others remain for hosts
  // that can't reach it.
  std::stable_partition(usable.begin(), usable.end(), [&](const InterfaceAddress& own) {
    return std::find(preferred.begin(), preferred.end(), own.address) != preferred.end();
  });
  std::vector<std::string> result;
  for (const InterfaceAddress& own : usable) {
    result.push_back(JoinHostPort(own.address, "0"));
  }
  return result;
}

}  // namespace hvd::net
