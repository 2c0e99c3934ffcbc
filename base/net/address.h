// Numeric network addresses: taking them apart, and choosing the one of this host that peers shall
// use.
#ifndef BASE_NET_ADDRESS_H_
#define BASE_NET_ADDRESS_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::net {

struct HostPort {
  std::string host;  // without brackets
  std::string port;
};

// "10.0.0.1:80" or "[::1]:80". Without a port, that is empty.
HostPort SplitHostPort(absl::string_view address);

// A socket address as the kernel takes it.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

// "address:port", numeric only: no name is looked up.   InvalidArgument: it is not that.
absl::StatusOr<SocketAddress> ParseSocketAddress(const std::string& address);

// The numeric address without the port.
std::string NumericHost(const SocketAddress& address);

// An address of this host, on an interface that is up.
struct OwnAddress {
  std::string interface;
  std::string address;  // numeric
};

std::vector<OwnAddress> OwnAddresses();

// The interface that has `address` (numeric); empty: none of `own` does.
std::string InterfaceOf(const std::string& address, const std::vector<OwnAddress>& own);

// The first of `own` that the first possible of `networks` (interface names or CIDRs such
// as 10.0.0.0/8) contains.
//   NotFound: none does; lists what there is.   InvalidArgument: a CIDR that can't be read.
absl::StatusOr<std::string> ChooseAddress(const std::vector<std::string>& networks,
                                          const std::vector<OwnAddress>& own);

}  // namespace hvd::net

#endif  // BASE_NET_ADDRESS_H_
