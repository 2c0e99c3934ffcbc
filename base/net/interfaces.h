// This machine's network interfaces, and the choice of their addresses by networks.
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

// All but link-local addresses of version 6, which mean nothing to peers.
// Errors:
//   - Internal: the kernel does not list them.
absl::StatusOr<std::vector<InterfaceAddress>> ListInterfaces();

// The interface that has `address` (numeric); empty: none has it.
std::string InterfaceOf(const std::string& address, const std::vector<InterfaceAddress>& own);

// A network is an interface's name, or an address range as "10.0.0.0/8".
bool IsCidr(const std::string& network);

// Errors:
//   - InvalidArgument: one of them is empty, or has a '/' but is not a range; says which.
absl::Status CheckNetworks(const std::vector<std::string>& networks);

// Whether an address is in one of `networks`, or `networks` is empty. REQUIRES:
// CheckNetworks(networks) is OK.
bool InNetworks(const InterfaceAddress& address, const std::vector<std::string>& networks);

// The first of `own` that is up and in a network of `networks`; earlier networks go first.
// Errors:
//   - NotFound: no address fits; lists the interfaces that there are.
//   - InvalidArgument: as CheckNetworks.
absl::StatusOr<std::string> ChooseAddress(const std::vector<std::string>& networks,
                                          const std::vector<InterfaceAddress>& own);

}  // namespace hvd::net

#endif  // BASE_NET_INTERFACES_H_
