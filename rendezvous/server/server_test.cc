#include "rendezvous/server/server.h"

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::server {
namespace {

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto authority = security::JobAuthority::Create("job");
    ASSERT_TRUE(authority.ok());
    options_.job_id = "job";
    options_.listen = {"127.0.0.1:0"};
    options_.credentials = *(*authority)->IssueForDaemon();
  }

  absl::Status StartStatus() { return Server::Start(options_).status(); }

  ServerOptions options_;
};

TEST_F(ServerTest, Start_OptionsThatCantWork_InvalidArgument) {
  const ServerOptions good = options_;
  const auto expect_invalid = [&] {
    EXPECT_EQ(StartStatus().code(), absl::StatusCode::kInvalidArgument) << StartStatus();
    options_ = good;
  };
  options_.job_id.clear();
  expect_invalid();
  options_.listen.clear();
  expect_invalid();
  options_.listen = {"localhost:0"};
  expect_invalid();
  options_.credentials.token.clear();
  expect_invalid();
  options_.credentials.private_key = "no key";
  expect_invalid();
  options_.job.min_workers = 0;
  expect_invalid();
  options_.job.max_workers = 0;
  expect_invalid();
  EXPECT_TRUE(StartStatus().ok());
}

TEST_F(ServerTest, Start_PortInUse_UnavailableAndSaysWhich) {
  auto first = Server::Start(options_);
  ASSERT_TRUE(first.ok());
  const std::string taken = (*first)->addresses()[0];
  options_.listen = {"127.0.0.1:0", taken};
  const absl::Status status = StartStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), taken)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "in use")) << status;
}

TEST_F(ServerTest, Addresses_HaveTheirRealPortsInTheOptionsOrder) {
  options_.listen = {"127.0.0.2:0", "127.0.0.1:0"};
  auto server = Server::Start(options_);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto addresses = (*server)->addresses();
  ASSERT_EQ(addresses.size(), 2u);
  EXPECT_TRUE(absl::StartsWith(addresses[0], "127.0.0.2:"));
  EXPECT_TRUE(absl::StartsWith(addresses[1], "127.0.0.1:"));
  for (const std::string& address : addresses) EXPECT_FALSE(absl::EndsWith(address, ":0"));
}

TEST_F(ServerTest, RequestStop_EndsTheJobWithItsCode) {
  membership::Verdict verdict;
  absl::Notification finished;
  options_.on_finished = [&](const membership::Verdict& v) {
    verdict = v;
    finished.Notify();
  };
  auto server = Server::Start(options_);
  ASSERT_TRUE(server.ok());
  EXPECT_EQ((*server)->Describe().state, lifecycle::JobState::kForming);
  (*server)->RequestStop("Ctrl-C", 130, absl::ZeroDuration());
  finished.WaitForNotification();
  EXPECT_EQ(verdict.exit_code, 130);
  EXPECT_EQ((*server)->Describe().state, lifecycle::JobState::kFailed);
}

TEST_F(ServerTest, Describe_FromOnFinished_DoesNotDeadlock) {
  std::optional<lifecycle::JobState> state;
  absl::Notification finished;
  absl::Notification assigned;
  std::unique_ptr<Server> server;
  options_.on_finished = [&](const membership::Verdict&) {
    assigned.WaitForNotification();
    state = server->Describe().state;
    finished.Notify();
  };
  server = *Server::Start(options_);
  assigned.Notify();
  server->RequestStop("enough", 1, absl::ZeroDuration());
  finished.WaitForNotification();
  EXPECT_EQ(state, lifecycle::JobState::kFailed);
}

}  // namespace
}  // namespace hvd::rendezvous::server
