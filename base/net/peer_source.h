// The source of a connection, by which strangers are bounded.
#ifndef BASE_NET_PEER_SOURCE_H_
#define BASE_NET_PEER_SOURCE_H_

#include <string>

namespace hvd::net {

// Returns a value that is equal for connections which one peer can make as many of as it likes:
// their IPv4 address, however it is written, all of 127.0.0.0/8 but 127.0.0.1 being one; the
// network of their IPv6 address, 64 bits, since a host may take all addresses of its network; the
// process at the other end of a unix socket. Empty if there is no peer any more. Thread-safe.
std::string PeerSource(int socket);

}  // namespace hvd::net

#endif  // BASE_NET_PEER_SOURCE_H_
