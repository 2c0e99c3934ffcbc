#include "rendezvous/transport/grpc_status.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(GrpcStatusTest, RoundTrip_KeepsCodeAndMessage) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::CancelledError("c"), absl::NotFoundError("n"),
        absl::FailedPreconditionError("f"), absl::UnauthenticatedError("u")}) {
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
}

TEST(GrpcStatusTest, LongMessage_IsCut) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError(std::string(100000, 'x')));
  EXPECT_EQ(status.error_message(), std::string(4096, 'x'));
}

}  // namespace
}  // namespace hvd
