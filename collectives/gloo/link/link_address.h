// Where a rank takes its links, in the few bytes that all ranks show each other.
#ifndef COLLECTIVES_GLOO_LINK_LINK_ADDRESS_H_
#define COLLECTIVES_GLOO_LINK_LINK_ADDRESS_H_

#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

namespace hvd::collectives::gloo::link {

// An IP address, of version 4 as one that is mapped into version 6, and a port; as long for all.
inline constexpr size_t kLinkAddressBytes = 16 + 2;

// A listening socket at a port of the system's choice, non-blocking and closed by exec.
//   InvalidArgument: `address` is not a numeric address of this machine.   Unavailable: the kernel
//   refuses; says why.
absl::StatusOr<Fd> ListenForLinks(const std::string& address);

// Where the listening socket `fd` is.   Unavailable: the kernel refuses.
absl::StatusOr<std::string> LinkAddressOf(int fd);

// As the kernel takes it.
struct LinkSocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};
//   InvalidArgument: not the bytes of an address.
absl::StatusOr<LinkSocketAddress> ParseLinkAddress(absl::string_view bytes);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_ADDRESS_H_
