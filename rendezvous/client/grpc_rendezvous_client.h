// The gRPC transport behind RendezvousClient.
#ifndef RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
#define RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::client {

// `address` is numeric, "address:port". Connects lazily. Retries with jittered back-off while the
// daemon can't be reached, never after it has answered.
std::unique_ptr<RendezvousClient> NewGrpcRendezvousClient(
    const std::string& address, const security::PeerCredentials& credentials);

struct Patience {
  // The connection ends when the daemon is silent for this long while its host answers.
  absl::Duration silence = absl::Seconds(30);
  // A call ends when the daemon was not reached for this long, if its timeout does not end it
  // earlier.
  absl::Duration away = absl::InfiniteDuration();
};

// A factory of such clients. Those that live at the same time share one connection, which ends with
// the last of them. Thread-safe.
std::function<std::unique_ptr<RendezvousClient>()> GrpcRendezvousClients(
    const std::string& address, const security::PeerCredentials& credentials,
    const Patience& patience = {});

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
