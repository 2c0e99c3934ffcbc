// The binary form of a link acceptor's address, for the key exchange.
#ifndef COLLECTIVES_GLOO_LINK_LINK_ADDRESS_H_
#define COLLECTIVES_GLOO_LINK_LINK_ADDRESS_H_

#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

namespace hvd::collectives::gloo::link {

// An IP address (IPv4 as an IPv4-mapped IPv6 address) and a port; the same length for all.
inline constexpr size_t kLinkAddressBytes = 16 + 2;

// Makes a socket that listens at an ephemeral port, non-blocking and close-on-exec.
// Errors:
//   - InvalidArgument: `address` is not a numeric address of this machine.
//   - Unavailable: the system call's error.
absl::StatusOr<Fd> ListenForLinks(const std::string& address);

// The address of the listening socket `fd`.
// Errors:
//   - Unavailable: the socket has no address.
absl::StatusOr<std::string> LinkAddressOf(int fd);

// An address in the form of the socket API.
struct LinkSocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};
// Errors:
//   - InvalidArgument: `bytes` is not of kLinkAddressBytes.
absl::StatusOr<LinkSocketAddress> ParseLinkAddress(absl::string_view bytes);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_ADDRESS_H_
