// The implementation of RendezvousClient over gRPC.
#ifndef RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
#define RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/transport/patience.h"

namespace hvd::rendezvous::client {

// Creates a client for the daemon at `address` (numeric "address:port"). It connects with the first
// call. It retries with jittered back-off while the daemon is unreachable, and does not retry a
// call that the daemon has answered.
std::unique_ptr<RendezvousClient> NewGrpcRendezvousClient(
    const std::string& address, const security::PeerCredentials& credentials);

struct Patience {
  // With the daemon's process while its host still answers.
  transport::Patience process;
  // A call fails when the daemon was unreachable for this long, or at its timeout if that is
  // earlier.
  absl::Duration away = absl::InfiniteDuration();
};

// As transport::PatienceFor.
inline Patience PatienceFor(absl::Duration silence, absl::Duration reattach) {
  return {transport::PatienceFor(silence, reattach)};
}

// Returns a factory of such clients. Clients that exist at the same time share one connection,
// which is closed with the last of them. The factory is thread-safe.
std::function<std::unique_ptr<RendezvousClient>()> GrpcRendezvousClients(
    const std::string& address, const security::PeerCredentials& credentials,
    const Patience& patience = {});

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
