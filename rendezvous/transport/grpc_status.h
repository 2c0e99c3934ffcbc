// Conversion between absl::Status and grpc::Status, which have the same codes.
#ifndef RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_
#define RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hvd::rendezvous::transport {

// Truncates the message to 4 KiB: gRPC sends a status in HTTP/2 trailers, and fails a call whose
// trailers are too large.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Also rewrites the message of a TLS handshake that failed because of a certificate.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_
