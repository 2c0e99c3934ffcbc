// Listen addresses of servers, in the form that users write.
#ifndef BASE_NET_LISTEN_ADDRESS_H_
#define BASE_NET_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"
#include "base/net/address.h"

namespace hvd::net {

// "127.0.0.1:0" or "[::1]:0".
struct ListenAddress {
  std::string host;  // without brackets
  std::string port;
  SocketAddress address;

  // The address as text, with another port.
  std::string WithPort(int chosen) const;
};

// Errors:
//   - InvalidArgument: not a numeric address with a port; says what it should look like.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Listens there with a non-blocking socket; at 0.0.0.0 by IPv6 as well, if there is any.
// Errors:
//   - Unavailable: nothing can listen there just now; names address and reason, e.g. that the port
//     is in use.
absl::StatusOr<Fd> ListenOn(const ListenAddress& address);

// The port of a bound socket.
int BoundPort(int fd);

}  // namespace hvd::net

#endif  // BASE_NET_LISTEN_ADDRESS_H_
