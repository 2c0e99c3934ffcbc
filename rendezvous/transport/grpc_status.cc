#include "rendezvous/transport/grpc_status.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace hvd::rendezvous::transport {
namespace {
constexpr size_t kLongestMessage = 4096;
// The details of a CANCELLED that is an answer; gRPC's own has none.
constexpr char kAnswer[] = "answer";
// OpenSSL's message, which gRPC includes in its own.
constexpr char kStrangeCertificate[] = "certificate verify failed";
constexpr absl::string_view kAnotherJob =
    "it belongs to another job than the token here, or the clock here is more than a day behind "
    "(certificate verify failed)";
}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kLongestMessage)),
                      absl::IsCancelled(status) ? kAnswer : "");
}

grpc::Status WithoutServersEnd(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::CANCELLED || !status.error_details().empty()) {
    return status;
  }
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "it ends");
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (absl::StrContains(status.error_message(), kStrangeCertificate)) {
    return absl::Status(code, kAnotherJob);
  }
  return absl::Status(code, status.error_message());
}

bool IsOfAnotherJob(const absl::Status& status) { return status.message() == kAnotherJob; }

}  // namespace hvd::rendezvous::transport
