#include "rendezvous/client/agent_link.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/agent.grpc.pb.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/transport/connection.h"

namespace hvd::rendezvous::client {
namespace {

using Stream = grpc::ServerReaderWriter<pb::AgentCommand, pb::AgentMessage>;

// Attach as the test says.
class ScriptedService final : public pb::Agent::Service {
 public:
  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override {
    return script(*stream);
  }
  std::function<grpc::Status(Stream&)> script;
};

class AgentLinkTest : public testing::Test {
 protected:
  void StartServer(std::function<grpc::Status(Stream&)> script) {
    service_.script = std::move(script);
    grpc::ServerBuilder builder;
    transport::ConfigureConnections(builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0",
                             security::MakeServerCredentials(*authority_->IssueForDaemon()), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  ~AgentLinkTest() override {
    if (server_ != nullptr) server_->Shutdown();
  }

  std::unique_ptr<AgentLink> Open() {
    pb::AgentHello hello;
    hello.set_host("a");
    AgentLink::Callbacks callbacks;
    callbacks.on_command = [this](const pb::AgentCommand& command) {
      absl::MutexLock lock(&mu_);
      commands_.push_back(command.ShortDebugString());
    };
    callbacks.on_closed = [this](absl::Status status) {
      end_ = std::move(status);
      closed_.Notify();
    };
    return AgentLink::Open(address_, *authority_->IssueForHost("a"), hello, std::move(callbacks));
  }

  static pb::AgentMessage Started(int64_t pid) {
    pb::AgentMessage message;
    message.mutable_started()->set_pid(pid);
    return message;
  }

  void WaitForCommands(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto enough = [&] { return commands_.size() >= count; };
    mu_.Await(absl::Condition(&enough));
  }

  const std::unique_ptr<security::JobAuthority> authority_ = *security::JobAuthority::Create("job");
  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  absl::Mutex mu_;
  std::vector<std::string> commands_;
  absl::Status end_;
  absl::Notification closed_;
};

TEST_F(AgentLinkTest, HelloComesFirst_CommandsComeInOrder) {
  StartServer([](Stream& stream) {
    pb::AgentMessage message;
    stream.Read(&message);
    pb::AgentCommand command;
    command.mutable_welcome()->set_job_id(message.hello().host());
    stream.Write(command);
    command.mutable_end()->set_grace_ms(7);
    stream.Write(command);
    return grpc::Status::OK;
  });
  const auto link = Open();
  closed_.WaitForNotification();
  EXPECT_TRUE(end_.ok()) << end_;
  EXPECT_EQ(commands_,
            (std::vector<std::string>{"welcome { job_id: \"a\" }", "end { grace_ms: 7 }"}));
}

TEST_F(AgentLinkTest, Refusal_IsOnClosedsStatus) {
  StartServer([](Stream&) { return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "host a"); });
  const auto link = Open();
  closed_.WaitForNotification();
  EXPECT_EQ(end_, absl::AlreadyExistsError("host a"));
  link->Send(Started(1));  // dropped
  link->Finish();
}

TEST_F(AgentLinkTest, FinishAfterManyMessages_AllArriveInOrder) {
  std::vector<int64_t> pids;
  StartServer([&](Stream& stream) {
    pb::AgentMessage message;
    while (stream.Read(&message)) {
      if (message.has_started()) pids.push_back(message.started().pid());
    }
    return grpc::Status::OK;
  });
  const auto link = Open();
  std::vector<int64_t> sent;
  for (int64_t pid = 1; pid <= 500; ++pid) {
    link->Send(Started(pid));
    sent.push_back(pid);
  }
  link->Finish();
  link->Send(Started(1000));  // too late
  closed_.WaitForNotification();
  EXPECT_TRUE(end_.ok()) << end_;
  EXPECT_EQ(pids, sent);
}

TEST_F(AgentLinkTest, SendFromACallback) {
  int64_t pid = 0;
  StartServer([&](Stream& stream) {
    pb::AgentMessage message;
    stream.Read(&message);
    stream.Write(pb::AgentCommand());
    stream.Read(&message);
    pid = message.started().pid();
    return grpc::Status::OK;
  });
  absl::Notification opened;
  std::unique_ptr<AgentLink> link;
  link = AgentLink::Open(address_, *authority_->IssueForHost("a"), pb::AgentHello(),
                         {[&](const pb::AgentCommand&) {
                            opened.WaitForNotification();
                            link->Send(Started(5));
                          },
                          [&](absl::Status) { closed_.Notify(); }});
  opened.Notify();
  closed_.WaitForNotification();
  EXPECT_EQ(pid, 5);
}

TEST_F(AgentLinkTest, Destructor_EndsTheStreamWithoutACallback) {
  absl::Notification ended;
  StartServer([&](Stream& stream) {
    pb::AgentMessage message;
    stream.Read(&message);
    stream.Write(pb::AgentCommand());
    while (stream.Read(&message)) {
    }
    ended.Notify();
    return grpc::Status::OK;
  });
  auto link = Open();
  WaitForCommands(1);
  link.reset();
  ended.WaitForNotification();
  EXPECT_FALSE(closed_.HasBeenNotified());
}

TEST_F(AgentLinkTest, DestructorRightAfterOpen_Returns) {
  StartServer([](Stream& stream) {
    pb::AgentMessage message;
    while (stream.Read(&message)) {
    }
    return grpc::Status::OK;
  });
  for (int i = 0; i < 20; ++i) Open();
}

TEST_F(AgentLinkTest, ServerGoesAway_ClosedWithUnavailable) {
  absl::Notification attached;
  StartServer([&](Stream& stream) {
    pb::AgentMessage message;
    stream.Read(&message);
    attached.Notify();
    while (stream.Read(&message)) {
    }
    return grpc::Status::OK;
  });
  const auto link = Open();
  attached.WaitForNotification();
  server_->Shutdown(gpr_time_0(GPR_TIMESPAN));
  closed_.WaitForNotification();
  EXPECT_FALSE(end_.ok());
}

TEST_F(AgentLinkTest, NobodyListens_ClosedWithUnavailable) {
  StartServer([](Stream&) { return grpc::Status::OK; });
  server_->Shutdown();
  server_.reset();
  const auto link = Open();
  closed_.WaitForNotification();
  EXPECT_EQ(end_.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd::rendezvous::client
