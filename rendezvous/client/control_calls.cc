#include "rendezvous/client/control_calls.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "grpcpp/client_context.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/transport/connection.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::client {
namespace {

template <typename Request, typename Response>
using Method = grpc::Status (pb::Rendezvous::StubInterface::*)(grpc::ClientContext*, const Request&,
                                                               Response*);

template <typename Request, typename Response>
absl::StatusOr<Response> Call(const std::string& address,
                              const security::PeerCredentials& credentials,
                              Method<Request, Response> method, const Request& request,
                              absl::Duration timeout) {
  const std::unique_ptr<pb::Rendezvous::StubInterface> stub =
      pb::Rendezvous::NewStub(transport::NewChannel(address, credentials));
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
  Response response;
  const grpc::Status status =
      transport::WithoutServersEnd((stub.get()->*method)(&context, request, &response));
  if (status.ok()) return response;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError(
        absl::StrCat("the rendezvous daemon at ", address,
                     " can't be reached: ", transport::FromGrpcStatus(status).message()));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(absl::StrCat("the rendezvous daemon at ", address,
                                                    " has not answered within ",
                                                    text::DurationText(timeout)));
  }
  return transport::FromGrpcStatus(status);
}

}  // namespace

absl::StatusOr<pb::GetStatusResponse> AskStatus(const std::string& address,
                                                const security::PeerCredentials& credentials,
                                                absl::Duration timeout) {
  return Call(address, credentials, &pb::Rendezvous::StubInterface::GetStatus,
              pb::GetStatusRequest(), timeout);
}

absl::StatusOr<pb::DrainResponse> AskToDrain(const std::string& address,
                                             const security::PeerCredentials& credentials,
                                             const pb::DrainRequest& request,
                                             absl::Duration timeout) {
  return Call(address, credentials, &pb::Rendezvous::StubInterface::Drain, request, timeout);
}

absl::StatusOr<pb::StopResponse> AskToStop(const std::string& address,
                                           const security::PeerCredentials& credentials,
                                           const pb::StopRequest& request, absl::Duration timeout) {
  return Call(address, credentials, &pb::Rendezvous::StubInterface::Stop, request, timeout);
}

}  // namespace hvd::rendezvous::client
