// Peers' addresses as values, by which a call is assigned to its connection.
#ifndef RENDEZVOUS_TRANSPORT_PEER_ADDRESS_H_
#define RENDEZVOUS_TRANSPORT_PEER_ADDRESS_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace hvd::rendezvous::transport {

// Where a connection comes from. The same peer is written in several ways: an IPv4 client of an
// IPv6 socket is ::ffff:10.0.0.1 for the kernel and 10.0.0.1 for gRPC, and each writes the
// interface of a link-local address differently. So addresses are compared, not their texts. The
// interface does not count.
struct PeerAddress {
  std::string ip;  // 16 bytes; of IPv4 its address in IPv6
  int port = 0;

  bool operator==(const PeerAddress& other) const { return ip == other.ip && port == other.port; }

  template <typename H>
  friend H AbslHashValue(H hash, const PeerAddress& peer) {
    return H::combine(std::move(hash), peer.ip, peer.port);
  }
};

// The peer of a connected TCP socket; nullopt if it has none any more.
std::optional<PeerAddress> PeerOfSocket(int fd);

// The peer of a call, from what grpc::ServerContext::peer() returns: "ipv4:10.0.0.1:80" or
// "ipv6:%5Bfd00::1%5D:80"; nullopt if that is no TCP connection.
std::optional<PeerAddress> PeerOfCall(absl::string_view peer);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_PEER_ADDRESS_H_
