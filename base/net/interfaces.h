// The list of this machine's network interfaces, and the selection of addresses by network.
#ifndef BASE_NET_INTERFACES_H_
#define BASE_NET_INTERFACES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hvd::net {

// One address of one interface.
struct InterfaceAddress {
  std::string interface;
  std::string address;  // numeric
  bool ipv6 = false;
  bool loopback = false;
  bool up = true;
};

// Returns all addresses except IPv6 link-local ones, which peers can't use.
// Errors:
//   - Internal: the kernel does not list the interfaces.
absl::StatusOr<std::vector<InterfaceAddress>> ListInterfaces();

// The address of this host from which the kernel sends to `peer`, a numeric "address:port".
// Sends nothing.
// Errors:
//   - InvalidArgument: `peer` is not such an address.
//   - Unavailable: there is no route to it; says why.
absl::StatusOr<std::string> SourceAddressTo(const std::string& peer);

// The interface that has `address` (numeric); empty: none has it.
std::string InterfaceOf(const std::string& address, const std::vector<InterfaceAddress>& own);

// Whether `network` is an address range such as "10.0.0.0/8", and not an interface's name.
bool IsCidr(const std::string& network);

// Errors:
//   - InvalidArgument: a network is empty, or has a '/' but is not a range; says which.
absl::Status CheckNetworks(const std::vector<std::string>& networks);

// Whether an address is in one of `networks`, or `networks` is empty. REQUIRES:
// CheckNetworks(networks) is OK.
bool InNetworks(const InterfaceAddress& address, const std::vector<std::string>& networks);

// Returns the first address in `own` that is up and in one of `networks`; earlier networks take
// precedence.
// Errors:
//   - NotFound: no address matches; lists the existing interfaces.
//   - InvalidArgument: as CheckNetworks.
absl::StatusOr<std::string> ChooseAddress(const std::vector<std::string>& networks,
                                          const std::vector<InterfaceAddress>& own);

}  // namespace hvd::net

#endif  // BASE_NET_INTERFACES_H_
