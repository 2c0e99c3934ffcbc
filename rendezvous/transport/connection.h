// The gRPC settings of control connections, for clients and servers: keepalive, message sizes,
// connection timeouts.
#ifndef RENDEZVOUS_TRANSPORT_CONNECTION_H_
#define RENDEZVOUS_TRANSPORT_CONNECTION_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/transport/patience.h"

namespace hvd::rendezvous::transport {

// The interval of keepalive pings on an idle connection, and the limit for the other host's kernel
// to acknowledge data (see tcp_user_timeout.h). Both sides therefore detect a host that is dead or
// cut off within 5 s.
inline constexpr int kHostSilenceMs = 2000;

// The maximum request size: one value of an exchange (1 MiB), with a margin, so that a value that
// is too large gets the service's error and not gRPC's.
inline constexpr int kLargestRequestBytes = (1 << 20) + (512 << 10);

// The maximum size of an answer or command: the answer to an exchange contains one value per rank.
inline constexpr int kLargestResponseBytes = 512 << 20;

// Creates a channel to the daemon, with its own connection, which is made with the first call.
// Ignores proxy settings of the environment. Thread-safe. `address` is one of:
// - a numeric "address:port";
// - several of these, separated by commas: each new connection uses the first one that listens;
// - "name:port": the name is resolved for each new connection.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const security::PeerCredentials& credentials,
                                          const Patience& patience = {});

// Creates a channel to a foreign server (etcd), without keepalive pings, which such a server may
// reject as too frequent. Otherwise like NewChannel.
std::shared_ptr<grpc::Channel> NewForeignChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Applies the same settings to a server.
void ConfigureConnections(grpc::ServerBuilder& builder,
                          absl::Duration process_patience = kProcessPatience);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_CONNECTION_H_
