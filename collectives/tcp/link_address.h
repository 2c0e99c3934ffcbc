// The binary form of the address of a rank's port, for the key exchange.
#ifndef COLLECTIVES_TCP_LINK_ADDRESS_H_
#define COLLECTIVES_TCP_LINK_ADDRESS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/net/address.h"

namespace hvd::collectives::tcp {

// An IP address (IPv4 as an IPv4-mapped IPv6 address) and a port; the same length for all.
inline constexpr size_t kLinkHostBytes = 16;  // the IP address, which comes first
inline constexpr size_t kLinkAddressBytes = kLinkHostBytes + 2;

// kLinkAddressBytes.
std::string LinkAddressOf(const net::SocketAddress& address);

// Errors:
//   - InvalidArgument: `bytes` is not of kLinkAddressBytes.
absl::StatusOr<net::SocketAddress> ParseLinkAddress(absl::string_view bytes);

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_LINK_ADDRESS_H_
