// The conversion between absl::Status and grpc::Status: the same codes, two types.
#ifndef RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_
#define RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hvd::rendezvous::transport {

// A message longer than 4 KiB is cut: a status travels in trailers, and trailers that are too large
// fail the call.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Explains a certificate that was not accepted.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_GRPC_STATUS_H_
