// Host name resolution and the network identity of this machine: which host names are local, and at
// which addresses agents reach the daemon.
#ifndef BASE_NET_LOCAL_NETWORK_H_
#define BASE_NET_LOCAL_NETWORK_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/net/interfaces.h"

namespace hvd::net {

// Numeric addresses by host name; empty for an unknown name.
using NameTable = std::map<std::string, std::vector<std::string>>;

// ---- Pure

// Whether a numeric address is one of loopback: of 127.0.0.0/8, also as an IPv4-mapped IPv6
// address, or ::1.
bool IsLoopbackAddress(const std::string& address);

// Whether `host` is this machine: "localhost", a loopback address, the machine's own name, or a
// name or address of one of its interfaces.
bool IsLocalHost(const std::string& host, const std::string& own_name,
                 const std::vector<InterfaceAddress>& interfaces, const NameTable& names);

// Returns the daemon's listen addresses, as numeric "address:0". If all hosts are local: only the
// loopback address, and every interface in `networks` must exist. Otherwise all addresses of
// interfaces that are up, not loopback and in `networks`, those in `preferred` first.
// Errors:
//   - InvalidArgument: no address is left, or an interface does not exist; lists the existing ones.
absl::StatusOr<std::vector<std::string>> ListenAddresses(
    const std::vector<InterfaceAddress>& interfaces, const std::vector<std::string>& networks,
    bool all_local, const std::vector<std::string>& preferred);

// ---- Not pure

std::string OwnHostName();

// Resolves all names in parallel. A name that is not resolved within `timeout` counts as unknown.
NameTable ResolveNames(const std::vector<std::string>& names, absl::Duration timeout);

// Returns this machine's source address for packets to a numeric address; empty if there is no
// route. Sends no packets.
std::string SourceAddressTowards(const std::string& address);

}  // namespace hvd::net

#endif  // BASE_NET_LOCAL_NETWORK_H_
