#include "rendezvous/client/control_calls.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::client {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(10);

class ControlCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    authority_ = *security::JobAuthority::Create("job");
    server::ServerOptions options;
    options.job_id = "job";
    options.listen = {"127.0.0.1:0"};
    options.credentials = *authority_->IssueForDaemon();
    auto server = server::Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->addresses()[0];
    credentials_ = *authority_->IssueForHost("somebody");
  }

  std::unique_ptr<security::JobAuthority> authority_;
  std::unique_ptr<server::Server> server_;
  std::string address_;
  security::PeerCredentials credentials_;
};

TEST_F(ControlCallsTest, AskStatus_RunningJob_IsDescribed) {
  auto status = AskStatus(address_, credentials_, kTimeout);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->job_id(), "job");
  EXPECT_EQ(status->state(), "forming");
}

TEST_F(ControlCallsTest, AskToDrain_StaticJob_IsRefusedByTheDaemon) {
  pb::DrainRequest request;
  request.set_host("a");
  const absl::Status status = AskToDrain(address_, credentials_, request, kTimeout).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

TEST_F(ControlCallsTest, AskStatus_NobodyThere_Unavailable) {
  server_.reset();
  const absl::Status status = AskStatus(address_, credentials_, kTimeout).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), address_)) << status;
}

TEST_F(ControlCallsTest, AskStatus_WrongToken_Unauthenticated) {
  credentials_.token = "guess";
  EXPECT_EQ(AskStatus(address_, credentials_, kTimeout).status().code(),
            absl::StatusCode::kUnauthenticated);
}

}  // namespace
}  // namespace hvd::rendezvous::client
