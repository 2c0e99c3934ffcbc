// A job's credentials in gRPC's terms: mutual TLS and the token, both on every call.
#ifndef RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_
#define RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd {

// The metadata key of the token.
inline constexpr char kTokenMetadataKey[] = "x-horovod-token";

// For a server: asks every client for a certificate of the job's CA, and every call for the job's
// token. The check sits below the services, so that it covers all of them, the health service and
// methods that don't exist included; who fails it gets UNAUTHENTICATED. Thread-safe.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const PeerCredentials& credentials);

// For a channel: shows the certificate, accepts only a server with a certificate of the job's CA,
// and adds the token to every call. The channel must expect the name kDaemonTlsName (see
// transport/connection.h). Thread-safe.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const PeerCredentials& credentials);

}  // namespace hvd

#endif  // RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_
