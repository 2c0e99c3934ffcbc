// A job's credentials as gRPC credentials: mutual TLS and the token, both on every call.
#ifndef RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_
#define RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {

// Call it before anything else of gRPC: its words are for programmers, and it must not shut down
// while the process ends. The functions below do so by themselves.
void KeepGrpc();

// The metadata key of the token. Services must not leak it.
inline constexpr char kTokenMetadataKey[] = "x-horovod-token";

// For a server of one job: requires a certificate of the job's CA from every client, and the job's
// token in every call. The check sits below the services, so that it covers all of them, including
// the health service and methods that don't exist. A call that fails it gets UNAUTHENTICATED.
// Thread-safe.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const PeerCredentials& credentials);

// The same for a server of several jobs: `is_valid` checks each call's token, from any thread and
// without blocking. Services see the token (kTokenMetadataKey), which identifies the job.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const PeerCredentials& credentials, std::function<bool(absl::string_view)> is_valid);

// For a channel: shows the certificate, accepts only a server with a certificate of the job's CA,
// and adds the token to every call. The channel must expect the name kDaemonTlsName (see
// transport/connection.h). Thread-safe.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const PeerCredentials& credentials);

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_
