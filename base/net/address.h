// Conversions of numeric network addresses between text and the kernel's structures.
#ifndef BASE_NET_ADDRESS_H_
#define BASE_NET_ADDRESS_H_

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::net {

struct HostPort {
  std::string host;  // without brackets
  std::string port;
};

// Splits "10.0.0.1:80", "[::1]:80" or "node1:80". The port is empty if the text has none.
HostPort SplitHostPort(absl::string_view address);

// Returns "10.0.0.1:80", or "[::1]:80" for an IPv6 address.
std::string JoinHostPort(absl::string_view host, absl::string_view port);

// Returns the 4 or 16 bytes of a numeric address without port and brackets, or "" if the address is
// not numeric.
std::string AddressBytes(const std::string& address);

// A socket address in the kernel's form.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

// Parses "10.0.0.1:80" or "[::1]:80". Looks up no names.
// Errors:
//   - InvalidArgument: not a numeric address with a port.
absl::StatusOr<SocketAddress> ParseSocketAddress(absl::string_view address);

// The numeric address without the port.
std::string NumericHost(const SocketAddress& address);

}  // namespace hvd::net

#endif  // BASE_NET_ADDRESS_H_
