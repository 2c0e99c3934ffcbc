#include "rendezvous/client/grpc_rendezvous_client.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/transport/connection.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::client {
namespace {

// Answers JoinWorld as the test says; all else is UNIMPLEMENTED.
class ScriptedService final : public pb::Rendezvous::Service {
 public:
  grpc::Status JoinWorld(grpc::ServerContext* context, const pb::JoinWorldRequest* request,
                         pb::JoinWorldResponse* response) override {
    return script(++calls, *context, *response);
  }

  std::function<grpc::Status(int, grpc::ServerContext&, pb::JoinWorldResponse&)> script;
  std::atomic<int> calls{0};
};

class GrpcRendezvousClientTest : public testing::Test {
 protected:
  ~GrpcRendezvousClientTest() override { StopServer(); }

  void StartServer(const std::string& address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    transport::ConfigureConnections(builder);
    int port = 0;
    builder.AddListeningPort(address,
                             security::MakeServerCredentials(*authority_->IssueForDaemon()), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  void StopServer() {
    if (server_ != nullptr) server_->Shutdown();
    server_.reset();
  }

  std::unique_ptr<RendezvousClient> NewClient(const Patience& patience = {}) {
    return GrpcRendezvousClients(address_, *authority_->IssueForHost("a"), patience)();
  }

  // Has calls park until the client gives them up.
  void ParkAll() {
    service_.script = [this](int call, grpc::ServerContext& context, pb::JoinWorldResponse&) {
      if (call == 1) parked_.Notify();
      given_up_.WaitForNotification();
      return grpc::Status::OK;
    };
  }

  const std::unique_ptr<security::JobAuthority> authority_ = *security::JobAuthority::Create("job");
  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  absl::Notification parked_;
  absl::Notification given_up_;
};

TEST_F(GrpcRendezvousClientTest, Answer_IsReturned) {
  service_.script = [](int, grpc::ServerContext&, pb::JoinWorldResponse& response) {
    response.mutable_world()->set_epoch(3);
    return grpc::Status::OK;
  };
  StartServer();
  const auto response = NewClient()->JoinWorld({}, absl::Minutes(1));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->world().epoch(), 3u);
}

TEST_F(GrpcRendezvousClientTest, Error_IsReturnedAtOnceAndNotTriedAgain) {
  service_.script = [](int, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the job is over");
  };
  StartServer();
  const auto response = NewClient()->JoinWorld({}, absl::InfiniteDuration());
  EXPECT_EQ(response.status(), absl::FailedPreconditionError("the job is over"));
  EXPECT_EQ(service_.calls, 1);
}

TEST_F(GrpcRendezvousClientTest, Unavailable_IsTriedAgain) {
  service_.script = [](int call, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return call < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "") : grpc::Status::OK;
  };
  StartServer();
  EXPECT_TRUE(NewClient()->JoinWorld({}, absl::Minutes(1)).ok());
  EXPECT_EQ(service_.calls, 3);
}

// gRPC's server cancels the calls that reach it while it shuts down.
TEST_F(GrpcRendezvousClientTest, CallThatTheServersEndCancels_IsTriedAgain) {
  service_.script = [](int call, grpc::ServerContext& context, pb::JoinWorldResponse&) {
    if (call == 1) context.TryCancel();
    return grpc::Status::OK;
  };
  StartServer();
  EXPECT_EQ(NewClient()->JoinWorld({}, absl::Minutes(1)).status(), absl::OkStatus());
  EXPECT_EQ(service_.calls, 2);
}

TEST_F(GrpcRendezvousClientTest, CancelledAsAnAnswer_IsReturned) {
  const absl::Status answer = absl::CancelledError("the worker has said that it fails");
  service_.script = [&](int, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return transport::ToGrpcStatus(answer);
  };
  StartServer();
  EXPECT_EQ(NewClient()->JoinWorld({}, absl::Minutes(1)).status(), answer);
}

TEST_F(GrpcRendezvousClientTest, ErrorAfterUnavailable_IsReturned) {
  service_.script = [](int call, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return call < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "")
                    : grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the job is over");
  };
  StartServer();
  EXPECT_EQ(NewClient()->JoinWorld({}, absl::Minutes(1)).status(),
            absl::FailedPreconditionError("the job is over"));
}

TEST_F(GrpcRendezvousClientTest, DaemonRestarts_CallSucceeds) {
  service_.script = [](int, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return grpc::Status::OK;
  };
  StartServer();
  const auto client = NewClient();
  EXPECT_TRUE(client->JoinWorld({}, absl::Minutes(1)).ok());
  StopServer();
  EXPECT_EQ(client->JoinWorld({}, absl::Milliseconds(300)).status().code(),
            absl::StatusCode::kUnavailable);
  auto later = std::async(std::launch::async,
                          [&] { return client->JoinWorld({}, absl::Seconds(20)).status(); });
  StartServer(address_);
  EXPECT_EQ(later.get(), absl::OkStatus());
}

TEST_F(GrpcRendezvousClientTest, DaemonEnds_CallEndsAfterThePatience_EvenWithALongTimeout) {
  service_.script = [](int, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return grpc::Status::OK;
  };
  StartServer();
  const auto client = NewClient({{}, absl::Milliseconds(300)});
  EXPECT_TRUE(client->JoinWorld({}, absl::InfiniteDuration()).ok());
  StopServer();
  EXPECT_EQ(client->JoinWorld({}, absl::InfiniteDuration()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(GrpcRendezvousClientTest, DaemonThatDefersCalls_IsGivenUp) {
  service_.script = [](int, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "later");
  };
  StartServer();
  const auto client = NewClient({{}, absl::Milliseconds(300)});
  EXPECT_EQ(client->JoinWorld({}, absl::InfiniteDuration()).status().code(),
            absl::StatusCode::kUnavailable);
}

// A worker's watch in a job whose daemon is replaced repeatedly: the daemon never counts as gone.
TEST_F(GrpcRendezvousClientTest, DaemonThatCameBackAndWent_IsNotGoneWhenTheTimeoutEnds) {
  service_.script = [](int, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "it ends");
  };
  StartServer();
  const auto client = NewClient();
  EXPECT_FALSE(client->GetStatus(absl::Minutes(1)).ok());  // so that there is a connection
  EXPECT_EQ(client->JoinWorld({}, absl::Milliseconds(500)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(service_.calls, 2);
}

// The limit for an unreachable daemon does not apply to one that parks the call.
TEST_F(GrpcRendezvousClientTest, ParkedCall_IsNotEndedByPatience) {
  service_.script = [this](int call, grpc::ServerContext& context, pb::JoinWorldResponse&) {
    if (call == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "");
    if (call == 3) parked_.Notify();  // the second one's limit was that of patience
    while (call == 2 && !context.IsCancelled()) std::this_thread::yield();
    if (call == 3) given_up_.WaitForNotification();
    return grpc::Status::OK;
  };
  StartServer();
  const auto client = NewClient({{}, absl::Milliseconds(300)});
  auto parked = std::async(
      std::launch::async, [&] { return client->JoinWorld({}, absl::InfiniteDuration()).status(); });
  parked_.WaitForNotification();
  given_up_.Notify();
  EXPECT_EQ(parked.get(), absl::OkStatus());
  EXPECT_EQ(service_.calls, 3);
}

TEST_F(GrpcRendezvousClientTest, EachMethod_ReachesItsOwn) {
  service_.script = [](int, grpc::ServerContext&, pb::JoinWorldResponse&) {
    return grpc::Status::OK;
  };
  StartServer();
  const auto client = NewClient();
  const auto code = absl::StatusCode::kUnimplemented;
  EXPECT_EQ(client->GetMembers({}, absl::Minutes(1)).status().code(), code);
  EXPECT_EQ(client->WatchEpoch({}, absl::Minutes(1)).status().code(), code);
  EXPECT_EQ(client->Exchange({}, absl::Minutes(1)).status().code(), code);
  EXPECT_EQ(client->Report({}, absl::Minutes(1)).status().code(), code);
  EXPECT_EQ(client->GetStatus(absl::Minutes(1)).status().code(), code);
  EXPECT_EQ(service_.calls, 0);
}

TEST_F(GrpcRendezvousClientTest, NobodyListens_UnavailableAfterTheTimeout_NamesTheDaemon) {
  StartServer();
  StopServer();
  const auto response = NewClient()->GetStatus(absl::Milliseconds(200));
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(response.status().message(), address_)) << response.status();
  EXPECT_TRUE(absl::StrContains(response.status().message(), "200ms")) << response.status();
}

TEST_F(GrpcRendezvousClientTest, ParkedTooLong_DeadlineExceeded) {
  ParkAll();
  StartServer();
  const auto client = NewClient();
  // First a call that is answered, so that the time of the next is not spent on connecting.
  EXPECT_FALSE(client->GetStatus(absl::Minutes(1)).ok());
  const auto response = client->JoinWorld({}, absl::Milliseconds(200));
  given_up_.Notify();
  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
}

TEST_F(GrpcRendezvousClientTest, CancelAll_EndsParkedAndLaterCalls) {
  ParkAll();
  StartServer();
  const auto client = NewClient();
  auto parked = std::async(
      std::launch::async, [&] { return client->JoinWorld({}, absl::InfiniteDuration()).status(); });
  parked_.WaitForNotification();
  client->CancelAll();
  EXPECT_EQ(parked.get().code(), absl::StatusCode::kCancelled);
  given_up_.Notify();
  EXPECT_EQ(client->GetStatus(absl::InfiniteDuration()).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(GrpcRendezvousClientTest, ClientsOfOneFactory_ShareAConnectionButNotCancelAll) {
  std::set<std::string> connections;
  service_.script = [&](int, grpc::ServerContext& context, pb::JoinWorldResponse&) {
    connections.insert(context.peer());
    return grpc::Status::OK;
  };
  StartServer();
  const auto new_client = GrpcRendezvousClients(address_, *authority_->IssueForHost("a"));
  const auto cancelled = new_client(), other = new_client();
  EXPECT_TRUE(cancelled->JoinWorld({}, absl::Minutes(1)).ok());
  cancelled->CancelAll();
  EXPECT_TRUE(other->JoinWorld({}, absl::Minutes(1)).ok());
  EXPECT_EQ(connections.size(), 1u);
}

TEST_F(GrpcRendezvousClientTest, ClientsOfOneFactory_TheLastOneEndsTheConnection) {
  std::set<std::string> connections;
  service_.script = [&](int, grpc::ServerContext& context, pb::JoinWorldResponse&) {
    connections.insert(context.peer());
    return grpc::Status::OK;
  };
  StartServer();
  const auto new_client = GrpcRendezvousClients(address_, *authority_->IssueForHost("a"));
  EXPECT_TRUE(new_client()->JoinWorld({}, absl::Minutes(1)).ok());
  EXPECT_TRUE(new_client()->JoinWorld({}, absl::Minutes(1)).ok());
  EXPECT_EQ(connections.size(), 2u);
}

TEST_F(GrpcRendezvousClientTest, CancelAll_EndsTryingAgain) {
  absl::Notification tried;
  service_.script = [&](int call, grpc::ServerContext&, pb::JoinWorldResponse&) {
    if (call == 2) tried.Notify();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "");
  };
  StartServer();
  const auto client = NewClient();
  auto trying = std::async(
      std::launch::async, [&] { return client->JoinWorld({}, absl::InfiniteDuration()).status(); });
  tried.WaitForNotification();
  client->CancelAll();
  EXPECT_EQ(trying.get().code(), absl::StatusCode::kCancelled);
}

TEST_F(GrpcRendezvousClientTest, DaemonOfOtherJob_IsRefused) {
  StartServer();
  const auto stranger = *security::JobAuthority::Create("other");
  const auto client = NewGrpcRendezvousClient(address_, *stranger->IssueForHost("a"));
  EXPECT_EQ(client->GetStatus(absl::Milliseconds(200)).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd::rendezvous::client
