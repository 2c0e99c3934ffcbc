// The implementation of RendezvousClient over gRPC.
#ifndef RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
#define RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::client {

// Creates a client for the daemon at `address` (numeric "address:port"). It connects with the first
// call. It retries with jittered back-off while the daemon is unreachable, and does not retry a
// call that the daemon has answered.
std::unique_ptr<RendezvousClient> NewGrpcRendezvousClient(
    const std::string& address, const security::PeerCredentials& credentials);

struct Patience {
  // The connection is closed when the daemon is silent for this long while its host still answers.
  absl::Duration silence = absl::Seconds(30);
  // A call fails when the daemon was unreachable for this long, or at its timeout if that is
  // earlier.
  absl::Duration away = absl::InfiniteDuration();
};

// Returns a factory of such clients. Clients that exist at the same time share one connection,
// which is closed with the last of them. The factory is thread-safe.
std::function<std::unique_ptr<RendezvousClient>()> GrpcRendezvousClients(
    const std::string& address, const security::PeerCredentials& credentials,
    const Patience& patience = {});

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
