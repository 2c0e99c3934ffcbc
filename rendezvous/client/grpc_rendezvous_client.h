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

// A factory of such clients. Those that live at the same time share one connection, which ends with
// the last of them, or when the daemon is silent for `patience` while its host answers.
// Thread-safe.
std::function<std::unique_ptr<RendezvousClient>()> GrpcRendezvousClients(
    const std::string& address, const security::PeerCredentials& credentials,
    absl::Duration patience = absl::Seconds(30));

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
