#include "rendezvous/transport/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/net/tcp_socket.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "rendezvous/security/tls_credentials.h"

namespace hvd::rendezvous::transport {
namespace {

constexpr int kGuardMs = 60000;  // ends a hang

// A server without services at one address.
class Listener {
 public:
  Listener(const std::string& address, const security::PeerCredentials& credentials) {
    ConfigureConnections(builder_);
    builder_.AddListeningPort(address, security::MakeServerCredentials(credentials), &port_);
    builder_.RegisterCallbackGenericService(&service_);
    server_ = builder_.BuildAndStart();
  }
  ~Listener() {
    if (server_ != nullptr) server_->Shutdown();
  }

  bool listens() const { return server_ != nullptr; }
  std::string port() const { return std::to_string(port_); }

 private:
  int port_ = 0;
  grpc::ServerBuilder builder_;
  grpc::CallbackGenericService service_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, size_t bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::Slice slice(std::string(bytes, 'x'));
  grpc::ByteBuffer request(&slice, 1);
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

// A call that waits for the connection, until the destructor.
class WaitingCall {
 public:
  explicit WaitingCall(const std::shared_ptr<grpc::Channel>& channel) : stub_(channel) {
    context_.set_wait_for_ready(true);
    call_ = stub_.PrepareUnaryCall(&context_, "/any/Thing", grpc::ByteBuffer(), &queue_);
    call_->StartCall();
    call_->Finish(&response_, &status_, nullptr);
  }
  ~WaitingCall() {
    context_.TryCancel();
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call_;
};

// Of this process's TCP connections.
std::vector<int> UserTimeoutsOfConnections() {
  std::vector<int> timeouts;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    int timeout = 0;
    socklen_t size = sizeof(timeout);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size) == 0) {
      timeouts.push_back(timeout);
    }
  }
  return timeouts;
}

class ConnectionTest : public testing::Test {
 protected:
  const std::unique_ptr<security::JobAuthority> authority_ = *security::JobAuthority::Create("job");
  const security::PeerCredentials daemon_ = *authority_->IssueForDaemon();
  const security::PeerCredentials host_ = *authority_->IssueForHost("a");
};

TEST_F(ConnectionTest, NewChannel_ReachesNumericAddresses) {
  const Listener v4("127.0.0.1:0", daemon_);
  EXPECT_EQ(Call(NewChannel("127.0.0.1:" + v4.port(), host_), 1).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  const Listener v6("[::1]:0", daemon_);
  if (!v6.listens()) GTEST_SKIP() << "no IPv6 on this machine";
  EXPECT_EQ(Call(NewChannel("[::1]:" + v6.port(), host_), 1).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ConnectionTest, NewChannel_ReachesNames) {
  const Listener server("127.0.0.1:0", daemon_);
  EXPECT_EQ(Call(NewChannel("localhost:" + server.port(), host_), 1).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ConnectionTest, NewChannel_SeveralAddresses_UsesTheOneThatListens) {
  auto first = std::make_unique<Listener>("127.0.0.1:0", daemon_);
  const Listener second("127.0.0.1:0", daemon_);
  const auto channel =
      NewChannel("127.0.0.1:" + first->port() + ",127.0.0.1:" + second.port(), host_);
  EXPECT_EQ(Call(channel, 1).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  const std::string left = first->port();
  first.reset();
  EXPECT_EQ(
      Call(NewChannel("127.0.0.1:" + left + ",127.0.0.1:" + second.port(), host_), 1).error_code(),
      grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(
      Call(NewChannel("[::1]:" + left + ",127.0.0.1:" + second.port(), host_), 1).error_code(),
      grpc::StatusCode::UNIMPLEMENTED)
      << "of both kinds";
}

TEST_F(ConnectionTest, NewChannel_IgnoresTheEnvironmentsProxy) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  const Listener server("127.0.0.1:0", daemon_);
  EXPECT_EQ(Call(NewChannel("127.0.0.1:" + server.port(), host_), 1).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  unsetenv("http_proxy");
}

// The kernel's part is not tested here: on one machine there is no host that does not answer.
TEST_F(ConnectionTest, BothEnds_TellSilentHostsFromSilentProcesses) {
  const Listener server("127.0.0.1:0", daemon_);
  const auto channel =
      NewChannel("127.0.0.1:" + server.port(), host_, {absl::Minutes(10), kProcessPatience});
  ASSERT_EQ(Call(channel, 1).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(UserTimeoutsOfConnections(), std::vector<int>(2, kHostSilenceMs));
}

// Whoever has the daemon's port while it is away accepts connections and never answers them.
TEST_F(ConnectionTest, PeerAcceptsAndIsSilent_AnotherAttemptFollows) {
  const Fd stranger = *net::ListenOnAnyPort("127.0.0.1");
  const WaitingCall call(NewChannel("127.0.0.1:" + std::to_string(*net::PortOf(stranger.get())),
                                    host_, PatienceFor(absl::Minutes(10), absl::Seconds(5))));
  std::vector<Fd> held;
  for (int attempt = 0; attempt < 2; ++attempt) {
    pollfd dialled = {stranger.get(), POLLIN, 0};
    ASSERT_EQ(poll(&dialled, 1, kGuardMs), 1) << "attempt " << attempt;
    held.emplace_back(accept4(stranger.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
}

TEST_F(ConnectionTest, NobodyListens_Unavailable) {
  std::string port;
  {
    const Listener gone("127.0.0.1:0", daemon_);
    port = gone.port();
  }
  EXPECT_EQ(Call(NewChannel("127.0.0.1:" + port, host_), 1).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ConnectionTest, ConfigureConnections_NoSecondServerOnThePort) {
  const Listener first("127.0.0.1:0", daemon_);
  const Listener second("127.0.0.1:" + first.port(), daemon_);
  EXPECT_FALSE(second.listens());
}

}  // namespace
}  // namespace hvd::rendezvous::transport
