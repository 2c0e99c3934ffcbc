// Conversion between absl::Status and grpc::Status, which have the same codes.
#ifndef RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_
#define RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hvd::rendezvous::transport {

// Truncates the message to 4 KiB: gRPC sends a status in HTTP/2 trailers, and fails a call whose
// trailers are too large.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Returns the status of a call, with UNAVAILABLE instead of CANCELLED if gRPC cancelled the call: a
// server that shuts down does so with the calls that still reach it. A CANCELLED of ToGrpcStatus is
// an answer and stays.
grpc::Status WithoutServersEnd(const grpc::Status& status);

// Also rewrites the message of a TLS handshake that failed because of a certificate.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Whether FromGrpcStatus made `status` of such a handshake: the server's certificate is not of the
// client's job.
bool IsOfAnotherJob(const absl::Status& status);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_
