// Fuzz target: the peers of calls, as gRPC writes them.
#include "rendezvous/transport/peer_address.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const auto peer = hvd::rendezvous::transport::PeerOfCall(hvd::AsText(data, size));
  if (!peer.has_value()) return 0;
  Require(peer->ip.size() == 16, "an address has 16 bytes");
  Require(peer->port >= 0 && peer->port <= 65535, "a port is one");
  return 0;
}
