// This machine's place in the network: the host names that mean this machine, and the addresses on
// which agents reach it.
#ifndef BASE_NET_LOCAL_NETWORK_H_
#define BASE_NET_LOCAL_NETWORK_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/net/interfaces.h"

namespace hvd::net {

// Numeric addresses by host name; an unknown name has none.
using NameTable = std::map<std::string, std::vector<std::string>>;

// ---- Pure

// Whether `host` is this machine: "localhost", a loopback address, the machine's own name, or a
// name or address of one of its interfaces.
bool IsLocalHost(const std::string& host, const std::string& own_name,
                 const std::vector<InterfaceAddress>& interfaces, const NameTable& names);

// The daemon's listen addresses, as numeric "address:0". All hosts local: the loopback address
// only, and every interface in `networks` must exist. Otherwise every address of an interface that
// is up, not loopback and in `networks`, those of `preferred` first.
// Errors:
//   - InvalidArgument: no address is left, or an interface is not known; says which there are.
absl::StatusOr<std::vector<std::string>> ListenAddresses(
    const std::vector<InterfaceAddress>& interfaces, const std::vector<std::string>& networks,
    bool all_local, const std::vector<std::string>& preferred);

// ---- Not pure

std::string OwnHostName();

// Asks the resolver for all names at once; a name without an answer in time counts as unknown.
NameTable ResolveNames(const std::vector<std::string>& names, absl::Duration timeout);

// This machine's numeric address on the route to a numeric address; empty if there is no route.
// Sends nothing.
std::string SourceAddressTowards(const std::string& address);

}  // namespace hvd::net

#endif  // BASE_NET_LOCAL_NETWORK_H_
