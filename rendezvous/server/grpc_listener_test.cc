#include "rendezvous/server/grpc_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/net/address.h"
#include "base/net/listen_address.h"
#include "base/net/strangers_test_util.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::server {
namespace {

constexpr rlim_t kFiles = 128;
constexpr int kMostPassed = kFiles / 8;
constexpr size_t kHandshakesAtOnce = 400;
constexpr int kNeeded = 8;  // by the job with the token "crowd"

// A clock that stands still unless the test advances it.
class StillClock : public Clock {
 public:
  absl::Time Now() override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  bool AwaitWithDeadline(absl::Mutex&, const absl::Condition&, absl::Time) override {
    return false;
  }
  void Advance(absl::Duration duration) {
    absl::MutexLock lock(&mutex_);
    now_ += duration;
  }

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

// A client's connection that has sent a first byte.
class Client {
 public:
  // With a `port` other than 0 it comes from this port of `source`.
  explicit Client(const std::string& listener, int port = 0,
                  const std::string& source = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int reuse = 1;
    setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    const net::SocketAddress from = *net::ParseSocketAddress(absl::StrCat(source, ":", port));
    const net::SocketAddress to = *net::ParseSocketAddress(listener);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&from.storage), from.length), 0);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length), 0);
    EXPECT_EQ(send(fd_.get(), "\x16", 1, MSG_NOSIGNAL), 1);
  }

  int port() const { return net::BoundPort(fd_.get()); }
  // As gRPC says it.
  std::string peer() const { return absl::StrCat("ipv4:127.0.0.1:", port()); }
  // A connection with a byte that was not read is reset.
  void AwaitHangUp() const {
    char byte = 0;
    EXPECT_LE(recv(fd_.get(), &byte, 1, 0), 0);
  }
  bool hung_up() const {
    char byte = 0;
    const ssize_t got = recv(fd_.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  Fd fd_;
};

// Stands for gRPC: keeps what it is given. `work` runs on the listener's thread.
class FakeGrpc : public GrpcListener::ExternalAcceptor {
 public:
  void HandleNewConnection(NewConnectionParameters* parameters) override {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      work = work_;
    }
    if (work) work();
    absl::MutexLock lock(&mutex_);
    connections_.emplace_back(parameters->fd);
    ++received_;  // last: then Await knows that the work is done
  }
  void Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto received = [&] {
      mutex_.AssertHeld();
      return received_ >= count;
    };
    mutex_.Await(absl::Condition(&received));
  }
  size_t received() {
    absl::MutexLock lock(&mutex_);
    return received_;
  }
  // gRPC closes the connections that have ended.
  void CloseAll() {
    absl::MutexLock lock(&mutex_);
    connections_.clear();
  }
  void set_work(std::function<void()> work) {
    absl::MutexLock lock(&mutex_);
    work_ = std::move(work);
  }

 private:
  absl::Mutex mutex_;
  std::vector<Fd> connections_ ABSL_GUARDED_BY(mutex_);
  size_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void()> work_ ABSL_GUARDED_BY(mutex_);
};

class GrpcListenerTest : public testing::Test {
 protected:
  void SetUp() override { Open(absl::Hours(1)); }
  void Open(absl::Duration handshake_time) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few = {kFiles, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    listener_ =
        *GrpcListener::Open({"127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0", "127.0.0.4:0"}, clock_);
    auto fake = std::make_unique<FakeGrpc>();
    grpc_ = fake.get();
    listener_->Begin(std::move(fake), handshake_time, [](const std::string& token) {
      return token == "crowd" ? size_t{kNeeded} : SIZE_MAX;
    });
  }
  void TearDown() override {
    listener_.reset();
    setrlimit(RLIMIT_NOFILE, &before_);
  }

  const std::string& address(size_t i) const { return listener_->addresses()[i]; }
  void Connect(int count, std::vector<Client>& clients) {
    for (int i = 0; i < count; ++i) clients.emplace_back(address(i % 4));
  }

  StillClock clock_;
  rlimit before_ = {};
  std::unique_ptr<GrpcListener> listener_;
  FakeGrpc* grpc_ = nullptr;
};

TEST_F(GrpcListenerTest, AuthenticatedConnection_Stays_TheOldestStrangerGoes) {
  const Client member(address(0));
  grpc_->Await(1);
  const Client stranger(address(0));
  grpc_->Await(2);
  listener_->OnAuthenticated(member.peer(), "token");
  std::vector<Client> crowd;
  Connect(kMostPassed, crowd);
  grpc_->Await(2 + kMostPassed);
  EXPECT_FALSE(member.hung_up());
  EXPECT_TRUE(stranger.hung_up());
}

// A client in the middle of a slow handshake, and one whose first bytes are on the way.
TEST_F(GrpcListenerTest, CrowdFromAnotherAddress_CostsOthersNothing) {
  constexpr int kCrowd = kMostPassed + 4;
  const Fd silent = net::ConnectFrom("127.0.0.2", address(0));
  const Client slow(address(0), 0, "127.0.0.2");
  grpc_->Await(1);
  std::vector<Fd> silent_crowd;
  for (int i = 0; i < kCrowd; ++i) {
    silent_crowd.push_back(net::ConnectFrom("127.0.0.1", address(i % 4)));
  }
  net::AwaitHangUps(silent_crowd, kCrowd + 1 - kMostPassed);
  std::vector<Client> crowd;
  Connect(kCrowd, crowd);
  grpc_->Await(1 + kCrowd);
  EXPECT_FALSE(slow.hung_up());
  ASSERT_EQ(send(silent.get(), "\x16", 1, MSG_NOSIGNAL), 1);
  grpc_->Await(2 + kCrowd);
}

// A client may use one port for two of our addresses.
TEST_F(GrpcListenerTest, OnePortTwoConnections_BothStay) {
  const Client first(address(0));
  grpc_->Await(1);
  const Client second(address(1), first.port());
  grpc_->Await(2);
  listener_->OnAuthenticated(first.peer(), "token");
  std::vector<Client> crowd;
  Connect(2 * kMostPassed, crowd);
  grpc_->Await(2 + 2 * kMostPassed);
  EXPECT_FALSE(first.hung_up());
  EXPECT_FALSE(second.hung_up());
}

// The token comes while the thread takes other connections: what counts is when it came.
TEST_F(GrpcListenerTest, AuthenticatedWhileACrowdComes_Stays) {
  const Client member(address(0));
  grpc_->Await(1);
  std::vector<Client> crowd;
  Connect(kMostPassed - 2, crowd);
  grpc_->Await(kMostPassed - 1);
  absl::Notification busy;
  absl::Notification authenticated;
  grpc_->set_work([&] {
    if (!busy.HasBeenNotified()) busy.Notify();
    authenticated.WaitForNotification();
  });
  crowd.emplace_back(address(0));  // now as many as there may be
  busy.WaitForNotification();
  Connect(8, crowd);
  listener_->OnAuthenticated(member.peer(), "token");
  authenticated.Notify();
  grpc_->Await(kMostPassed + 8);
  EXPECT_FALSE(member.hung_up());
}

// gRPC would do each of their handshakes, on all cores.
TEST_F(GrpcListenerTest, HandshakesOfOneSource_AreBounded_OthersAreTakenAtOnce) {
  std::vector<Client> crowd;
  for (size_t passed = 1; passed <= kHandshakesAtOnce; ++passed) {
    crowd.emplace_back(address(0));
    grpc_->Await(passed);
    if (passed % 8 > 0) continue;
    crowd.clear();
    grpc_->CloseAll();
  }
  crowd.emplace_back(address(0));
  crowd.back().AwaitHangUp();
  const Client other(address(0), 0, "127.0.0.2");
  grpc_->Await(kHandshakesAtOnce + 1);
  clock_.Advance(absl::Milliseconds(5));
  crowd.emplace_back(address(0));
  grpc_->Await(kHandshakesAtOnce + 2);
  crowd.emplace_back(address(0));
  crowd.back().AwaitHangUp();
}

TEST_F(GrpcListenerTest, HandshakesOfMembers_AreNotBounded) {
  for (size_t passed = 1; passed <= kHandshakesAtOnce + 100; ++passed) {
    const Client member(address(0));
    grpc_->Await(passed);
    listener_->OnAuthenticated(member.peer(), "token");
    if (passed % 8 == 0) grpc_->CloseAll();
  }
}

// Of another job, and what the process needs for itself.
TEST_F(GrpcListenerTest, MembersOfOneJob_LeaveDescriptorsToOthers) {
  const Client other(address(0));
  grpc_->Await(1);
  listener_->OnAuthenticated(other.peer(), "other");
  std::vector<Client> crowd;
  size_t received = 1;
  const auto hung_up = [&] {
    return std::count_if(crowd.begin(), crowd.end(), [](const Client& c) { return c.hung_up(); });
  };
  while (hung_up() == 0) {
    crowd.emplace_back(address(0));
    grpc_->Await(++received);
    listener_->OnAuthenticated(crowd.back().peer(), "crowd");
  }
  // The newest one had not authenticated itself.
  EXPECT_EQ(hung_up(), static_cast<int64_t>(crowd.size()) - 1 - kNeeded);
  EXPECT_FALSE(other.hung_up());
  const Fd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(file.valid());
}

// Each gets its share if all are needed.
TEST_F(GrpcListenerTest, ShortOfDescriptorsThatAllAreNeeded_NewConnectionsAreClosed) {
  std::vector<Client> members;
  for (size_t received = 1;; ++received) {
    members.emplace_back(address(0));
    while (grpc_->received() < received && !members.back().hung_up()) std::this_thread::yield();
    if (members.back().hung_up()) break;
    listener_->OnAuthenticated(members.back().peer(), "other");
  }
  members.pop_back();
  for (const Client& member : members) EXPECT_FALSE(member.hung_up());
}

// The certificate is that of all jobs.
TEST_F(GrpcListenerTest, NoCallInTime_IsDisconnected) {
  TearDown();
  Open(absl::Milliseconds(100));
  const Client stranger(address(0));
  stranger.AwaitHangUp();
}

TEST_F(GrpcListenerTest, UnknownPeer_ChangesNothing) {
  const Client stranger(address(0));
  grpc_->Await(1);
  listener_->OnAuthenticated("unix:/run/socket", "token");
  listener_->OnAuthenticated("ipv4:127.0.0.1:1", "token");
  std::vector<Client> crowd;
  Connect(kMostPassed, crowd);
  grpc_->Await(1 + kMostPassed);
  EXPECT_TRUE(stranger.hung_up());
}

}  // namespace
}  // namespace hvd::rendezvous::server
