// The settings of control connections, on both sides: keepalive, sizes, time to connect.
#ifndef RENDEZVOUS_TRANSPORT_CONNECTION_H_
#define RENDEZVOUS_TRANSPORT_CONNECTION_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::transport {

// After a pause of this length a ping is sent. If the other host's kernel does not acknowledge it
// within the same time, the connection ends: either side notices a host that is dead or cut off
// within 5 s.
inline constexpr int kHostSilenceMs = 2000;

// How long the process on the other host, and this one, may be stopped or starved of CPU, before or
// after they are connected.
inline constexpr absl::Duration kProcessPatience = absl::Seconds(30);

// The largest request: one value of an exchange (1 MiB) and some room, so that a value that is too
// large gets a proper answer.
inline constexpr int kLargestRequestBytes = 4 << 20;

// The largest answer or command: a round of exchange has a value of each rank.
inline constexpr int kLargestResponseBytes = 512 << 20;

// A channel to the daemon at `address`, with a separate connection. The address is a numeric
// "address:port", or several with commas between them, of which the first that listens is used at
// each new connection; or "name:port", whose name is resolved at each new connection. Connects with
// the first call; the environment's proxies are not used. Thread-safe.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const security::PeerCredentials& credentials,
                                          absl::Duration process_patience = kProcessPatience);

// A channel to a server that is not ours, which would not like our keepalive. Else as above.
std::shared_ptr<grpc::Channel> NewForeignChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Sets the server's side of the same.
void ConfigureConnections(grpc::ServerBuilder& builder,
                          absl::Duration process_patience = kProcessPatience);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_CONNECTION_H_
