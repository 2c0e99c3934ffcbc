// Peers without valid credentials are rejected in every call.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/transport/connection.h"
#include "tests/integration/rendezvous_job.h"

namespace hvd {
namespace {

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kGetStatus[] = "/hvd.pb.Rendezvous/GetStatus";

std::vector<std::string> AllMethods() {
  return {"/hvd.pb.Rendezvous/JoinWorld",
          "/hvd.pb.Rendezvous/WatchEpoch",
          "/hvd.pb.Rendezvous/Exchange",
          "/hvd.pb.Rendezvous/Report",
          kGetStatus,
          "/hvd.pb.Agent/Attach",
          kHealthCheck,
          "/grpc.health.v1.Health/Watch",
          "/hvd.pb.Rendezvous/NoSuchMethod",
          "/no.such.Service/Method"};
}

struct Answer {
  grpc::Status status;
  std::string bytes;
  std::string metadata;  // all that the server sent beside
};

// Any method, by its name, with any bytes.
Answer Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
            const std::string& bytes, grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_compression_algorithm(compression);
  grpc::CompletionQueue queue;
  grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  Answer answer;
  auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, &answer.status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::vector<grpc::Slice> slices;
  if (response.Valid() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& each : slices) answer.bytes.append(each.begin(), each.end());
  }
  for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
    answer.metadata.append(value.data(), value.size());
  }
  return answer;
}

class RendezvousSecurityTest : public testing::Test {
 protected:
  // A channel that differs from the right one in its credentials only.
  std::shared_ptr<grpc::Channel> ChannelWith(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(rendezvous::security::kDaemonTlsName);
    return grpc::CreateCustomChannel("ipv4:" + job_.address(), credentials, arguments);
  }

  grpc::SslCredentialsOptions Tls() const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = host_.ca_certificate;
    options.pem_private_key = host_.private_key;
    options.pem_cert_chain = host_.certificate;
    return options;
  }

  // Every method is refused with this code, and nothing about the job comes back.
  void ExpectRefused(const std::shared_ptr<grpc::Channel>& channel, grpc::StatusCode code) {
    for (const std::string& method : AllMethods()) {
      const Answer answer = Call(channel, method, "");
      EXPECT_EQ(answer.status.error_code(), code) << method << answer.status.error_message();
      EXPECT_EQ(answer.bytes, "") << method;
      for (const std::string& text :
           {answer.status.error_message(), answer.status.error_details(), answer.metadata}) {
        EXPECT_FALSE(absl::StrContains(text, "the-job")) << method << text;
        EXPECT_FALSE(absl::StrContains(text, host_.token)) << method << text;
      }
    }
  }

  RendezvousJob job_{1};
  const rendezvous::security::PeerCredentials host_ = job_.host_credentials();
};

TEST_F(RendezvousSecurityTest, NoToken) {
  ExpectRefused(ChannelWith(grpc::SslCredentials(Tls())), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(RendezvousSecurityTest, WrongToken) {
  const std::string right = host_.token;
  for (const std::string& token :
       {std::string(), right.substr(1), right + "0", std::string(right.size(), '0')}) {
    rendezvous::security::PeerCredentials wrong = host_;
    wrong.token = token;
    ExpectRefused(ChannelWith(rendezvous::security::MakeChannelCredentials(wrong)),
                  grpc::StatusCode::UNAUTHENTICATED);
  }
}

TEST_F(RendezvousSecurityTest, TwoTokens_EvenIfOneIsRight) {
  rendezvous::security::PeerCredentials wrong = host_;
  wrong.token = "wrong";
  class Right : public grpc::MetadataCredentialsPlugin {
   public:
    explicit Right(std::string token) : token_(std::move(token)) {}
    bool IsBlocking() const override { return false; }
    grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                             std::multimap<std::string, std::string>* metadata) override {
      metadata->emplace(rendezvous::security::kTokenMetadataKey, token_);
      return grpc::Status::OK;
    }

   private:
    const std::string token_;
  };
  ExpectRefused(ChannelWith(grpc::CompositeChannelCredentials(
                    rendezvous::security::MakeChannelCredentials(wrong),
                    grpc::MetadataCredentialsFromPlugin(std::make_unique<Right>(host_.token)))),
                grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(RendezvousSecurityTest, OtherJobsCertificate_EvenWithTheRightToken) {
  const auto other_job = *rendezvous::security::JobAuthority::Create("the-job");
  rendezvous::security::PeerCredentials other = *other_job->IssueForHost("host");
  other.token = host_.token;
  other.ca_certificate = host_.ca_certificate;
  ExpectRefused(ChannelWith(rendezvous::security::MakeChannelCredentials(other)),
                grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RendezvousSecurityTest, TlsWithoutClientCertificate_EvenWithTheRightToken) {
  rendezvous::security::PeerCredentials bare = host_;
  bare.certificate.clear();
  bare.private_key.clear();
  ExpectRefused(ChannelWith(rendezvous::security::MakeChannelCredentials(bare)),
                grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RendezvousSecurityTest, PlainText) {
  ExpectRefused(ChannelWith(grpc::InsecureChannelCredentials()), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RendezvousSecurityTest, MemberOfTheJob_GetsAnswers) {
  const auto channel = ChannelWith(rendezvous::security::MakeChannelCredentials(host_));
  const Answer health = Call(channel, kHealthCheck, "");
  EXPECT_TRUE(health.status.ok()) << health.status.error_message();
  EXPECT_EQ(health.bytes, "\x08\x01");  // SERVING
  pb::GetStatusResponse status;
  EXPECT_TRUE(status.ParseFromString(Call(channel, kGetStatus, "").bytes));
  EXPECT_EQ(status.job_id(), "the-job");
}

TEST_F(RendezvousSecurityTest, AgentWithAnotherHostsCertificate_IsRefused) {
  PlayedAgent impostor(job_.address(), job_.credentials_of("b"), "a", 1);
  const absl::Status refused = impostor.WaitForClose();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "is host b's, and not host a's")) << refused;
  PlayedAgent control(job_.address(), job_.credentials_of("horovodrun status"), "a", 1);
  EXPECT_TRUE(absl::IsPermissionDenied(control.WaitForClose()));
  // Nobody has taken its place meanwhile.
  PlayedAgent right(job_.address(), job_.credentials_of("a"), "a", 1);
  EXPECT_EQ(right.WaitForStarts(1).size(), 1u);
}

TEST_F(RendezvousSecurityTest, NoReflection) {
  const auto channel = ChannelWith(rendezvous::security::MakeChannelCredentials(host_));
  EXPECT_EQ(Call(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "")
                .status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(RendezvousSecurityTest, InvalidMessages_AreRefused) {
  const auto channel = ChannelWith(rendezvous::security::MakeChannelCredentials(host_));
  for (const std::string& method : AllMethods()) {
    EXPECT_FALSE(Call(channel, method, std::string("\xff\xff\xff", 3)).status.ok()) << method;
  }
  EXPECT_TRUE(Call(channel, kGetStatus, "").status.ok());
}

TEST_F(RendezvousSecurityTest, RequestThatIsTooLarge_IsRefused) {
  const auto channel = ChannelWith(rendezvous::security::MakeChannelCredentials(host_));
  const Answer answer =
      Call(channel, kGetStatus, std::string(rendezvous::transport::kLargestRequestBytes + 1, '\0'));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// gRPC would unpack it first, a thousand times its size, and then say that it is too large.
TEST_F(RendezvousSecurityTest, CompressedRequests_AreNotUnpacked) {
  const auto channel = ChannelWith(rendezvous::security::MakeChannelCredentials(host_));
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    for (const std::string& method : AllMethods()) {
      const Answer answer = Call(channel, method, std::string(16 << 20, '\0'), algorithm);
      EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
      EXPECT_FALSE(absl::StrContains(answer.status.error_message(), "larger than max")) << method;
    }
  }
  EXPECT_TRUE(Call(channel, kGetStatus, "").status.ok());
}

}  // namespace
}  // namespace hvd
