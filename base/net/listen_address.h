// Parsing of servers' listen addresses, and sockets that listen there.
#ifndef BASE_NET_LISTEN_ADDRESS_H_
#define BASE_NET_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"
#include "base/net/address.h"

namespace hvd::net {

// A numeric address with a port: "127.0.0.1:0" or "[::1]:0".
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

// Returns a non-blocking listening socket. For 0.0.0.0 it also accepts IPv6 if the machine has
// IPv6.
// Errors:
//   - Unavailable: can't listen at the address now; names the address and the reason, e.g. that the
//     port is in use.
absl::StatusOr<Fd> ListenOn(const ListenAddress& address);

// The port of a bound socket.
int BoundPort(int fd);

}  // namespace hvd::net

#endif  // BASE_NET_LISTEN_ADDRESS_H_
