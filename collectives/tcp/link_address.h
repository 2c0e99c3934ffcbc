// The binary form of a link acceptor's address, for the key exchange.
#ifndef COLLECTIVES_TCP_LINK_ADDRESS_H_
#define COLLECTIVES_TCP_LINK_ADDRESS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/net/address.h"
#include "collectives/peer_handshake.h"

namespace hvd::collectives::tcp {

// An IP address (IPv4 as an IPv4-mapped IPv6 address) and a port; the same length for all.
inline constexpr size_t kLinkAddressBytes = 16 + 2;

// The protocol that the dialer of a link names.
inline constexpr absl::string_view kLinkProtocol("hvdlink4", kProtocolBytes);

// The address of the listening socket `fd`.
// Errors:
//   - Unavailable: the socket has no address.
absl::StatusOr<std::string> LinkAddressOf(int fd);

// Errors:
//   - InvalidArgument: `bytes` is not of kLinkAddressBytes.
absl::StatusOr<net::SocketAddress> ParseLinkAddress(absl::string_view bytes);

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_LINK_ADDRESS_H_
