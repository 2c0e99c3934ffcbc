// This machine's network interfaces, and which of their addresses are in given networks.
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
//   - Internal: the kernel does not say.
absl::StatusOr<std::vector<InterfaceAddress>> ListInterfaces();

// The interface that has `address` (numeric); empty: none has.
std::string InterfaceOf(const std::string& address, const std::vector<InterfaceAddress>& own);

// A network is an interface's name, or an address range as "10.0.0.0/8".
bool IsCidr(const std::string& network);

// Errors:
//   - InvalidArgument: one of them is empty, or has a '/' but is no range; says which.
absl::Status CheckNetworks(const std::vector<std::string>& networks);

// Whether an address is in one of `networks`; they must have passed CheckNetworks. No networks:
// yes.
bool InNetworks(const InterfaceAddress& address, const std::vector<std::string>& networks);

// The first of `own` that is up and in the first possible of `networks`.
// Errors:
//   - NotFound: none is; lists what there is.
//   - InvalidArgument: as CheckNetworks.
absl::StatusOr<std::string> ChooseAddress(const std::vector<std::string>& networks,
                                          const std::vector<InterfaceAddress>& own);

}  // namespace hvd::net

#endif  // BASE_NET_INTERFACES_H_
