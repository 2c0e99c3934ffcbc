// The address of a rank's link acceptor, in a few bytes for the key exchange.
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

// A listening socket at a port of the system's choice, non-blocking and closed by exec.
// Errors:
//   - InvalidArgument: `address` is not a numeric address of this machine.
//   - Unavailable: the kernel refuses; says why.
absl::StatusOr<Fd> ListenForLinks(const std::string& address);

// The address of the listening socket `fd`.
// Errors:
//   - Unavailable: the kernel refuses.
absl::StatusOr<std::string> LinkAddressOf(int fd);

// The form that the kernel takes.
struct LinkSocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};
// Errors:
//   - InvalidArgument: not the bytes of an address.
absl::StatusOr<LinkSocketAddress> ParseLinkAddress(absl::string_view bytes);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_ADDRESS_H_
