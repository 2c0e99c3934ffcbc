#include "rendezvous/security/tls_credentials.h"

#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::security {
namespace {

// A server without any service: UNIMPLEMENTED shows that a call was authenticated.
class TlsCredentialsTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", MakeServerCredentials(*authority_->IssueForDaemon()),
                             &port);
    service_ = std::make_unique<grpc::CallbackGenericService>();
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  ~TlsCredentialsTest() override { server_->Shutdown(); }

  grpc::Status Call(const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                    const std::string& tls_name = kDaemonTlsName) {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(tls_name);
    grpc::GenericStub stub(grpc::CreateCustomChannel(address_, credentials, arguments));
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::ByteBuffer request;
    grpc::ByteBuffer response;
    grpc::Status status;
    auto call = stub.PrepareUnaryCall(&context, "/any/Thing", request, &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  const std::unique_ptr<JobAuthority> authority_ = *JobAuthority::Create("job");
  PeerCredentials host_ = *authority_->IssueForHost("a");
  std::unique_ptr<grpc::CallbackGenericService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(TlsCredentialsTest, HostOfTheJob_GetsIn) {
  EXPECT_EQ(Call(MakeChannelCredentials(host_)).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(TlsCredentialsTest, WrongToken_Unauthenticated) {
  host_.token[0] = host_.token[0] == '0' ? '1' : '0';
  EXPECT_EQ(Call(MakeChannelCredentials(host_)).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsCredentialsTest, OtherJobsCertificate_NoConnection) {
  PeerCredentials other = *(*JobAuthority::Create("job"))->IssueForHost("a");
  other.token = host_.token;
  EXPECT_EQ(Call(MakeChannelCredentials(other)).error_code(), grpc::StatusCode::UNAVAILABLE);
  other.ca_certificate = host_.ca_certificate;  // it trusts the server, but not the reverse
  EXPECT_EQ(Call(MakeChannelCredentials(other)).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsCredentialsTest, DaemonsCertificateAsAClients_NoConnection) {
  EXPECT_EQ(Call(MakeChannelCredentials(*authority_->IssueForDaemon())).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsCredentialsTest, ServerByAnotherName_NoConnection) {
  EXPECT_EQ(Call(MakeChannelCredentials(host_), "127.0.0.1").error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsCredentialsTest, HostsCertificateAsAServers_NoConnection) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", MakeServerCredentials(host_), &port);
  grpc::CallbackGenericService service;
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(Call(MakeChannelCredentials(host_)).error_code(), grpc::StatusCode::UNAVAILABLE);
  server->Shutdown();
}

}  // namespace
}  // namespace hvd::rendezvous::security
