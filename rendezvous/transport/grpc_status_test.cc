#include "rendezvous/transport/grpc_status.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd::rendezvous::transport {
namespace {

TEST(GrpcStatusTest, RoundTrip_KeepsCodeAndMessage) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::CancelledError("c"), absl::NotFoundError("n"),
        absl::FailedPreconditionError("f"), absl::UnauthenticatedError("u")}) {
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
}

TEST(GrpcStatusTest, CancelledByGrpc_IsUnavailable_AnAnswerStays) {
  EXPECT_EQ(WithoutServersEnd(grpc::Status::CANCELLED).error_code(), grpc::StatusCode::UNAVAILABLE);
  for (const absl::Status& status : {absl::OkStatus(), absl::CancelledError("")}) {
    EXPECT_EQ(FromGrpcStatus(WithoutServersEnd(ToGrpcStatus(status))), status);
  }
}

TEST(GrpcStatusTest, LongMessage_IsCut) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError(std::string(100000, 'x')));
  EXPECT_EQ(status.error_message(), std::string(4096, 'x'));
}

TEST(GrpcStatusTest, StrangeCertificate_IsExplained) {
  const absl::Status status = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::UNAVAILABLE,
                   "failed to connect to all addresses; last error: UNKNOWN: Ssl handshake failed: "
                   "SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message().find("it belongs to another job than the token here"), 0u);
}

}  // namespace
}  // namespace hvd::rendezvous::transport
