// The gRPC credentials of a job: mutual TLS, and the token in every call.
#ifndef RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_
#define RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {

// Initializes gRPC for this process: silences its log except for failed assertions, and keeps it
// from shutting down during the process's exit. Call it before any other gRPC function; the
// functions below call it themselves.
void KeepGrpc();

// The metadata key of the token. Services must not log or forward its value.
inline constexpr char kTokenMetadataKey[] = "x-horovod-token";

// Creates the credentials of a server for one job: they require a certificate of the job's CA from
// every client, and the job's token in every call. The check runs before the services, so that it
// covers all methods, including the health service and unknown methods. A call that fails it gets
// UNAUTHENTICATED. Thread-safe.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const PeerCredentials& credentials);

// The same for a server of several jobs: `is_valid` checks each call's token, from any thread and
// without blocking. Services see the token (kTokenMetadataKey), which identifies the job.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const PeerCredentials& credentials, std::function<bool(absl::string_view)> is_valid);

// Creates the credentials of a channel: it presents the certificate, accepts only servers with a
// certificate of the job's CA, and adds the token to every call. The channel must expect the name
// kDaemonTlsName (see transport/connection.h). Thread-safe.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const PeerCredentials& credentials);

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_TLS_CREDENTIALS_H_
