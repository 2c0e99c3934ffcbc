#include "worker_runtime/control/control_channel.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/net/tcp_socket.h"
#include "base/net/tls_session.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/peer/peer_port.h"
#include "collectives/shm/shm_backend.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"
#include "worker_runtime/control/mail_control_channel.h"

namespace hvd::worker_runtime::control {
namespace {

constexpr char kAddress[] = "127.0.0.1";
constexpr absl::Duration kLong = absl::Seconds(60);

enum class Under { kTcp, kTls, kSharedMemory };

// The TLS context of the workers of one job.
std::shared_ptr<const net::TlsContext> NewTls() {
  const rendezvous::security::PeerCredentials issued =
      *(*rendezvous::security::JobAuthority::Create("job"))->IssueForHost("any host");
  return *net::TlsContext::Create({issued.ca_certificate, issued.certificate, issued.private_key});
}

// `size` channels that are connected with each other, made in as many threads.
class Star {
 public:
  Star(int size, Under under)
      : tls_(under == Under::kTls ? NewTls() : nullptr),
        port_(*collectives::peer::PeerPort::Open(kAddress)),
        channels_(size) {
    if (under == Under::kSharedMemory) {
      memory_.Connect(size);
      for (int rank = 0; rank < size; ++rank) {
        channels_[rank] = MakeMailControlChannel(*memory_.at(rank).mailbox(), rank, size);
      }
      return;
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([this, rank] {
        auto channel = Connect(rank, "secret");
        ASSERT_TRUE(channel.ok()) << channel.status();
        channels_[rank] = *std::move(channel);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  absl::StatusOr<std::unique_ptr<ControlChannel>> Connect(int rank, const std::string& secret) {
    const int size = static_cast<int>(channels_.size());
    return ControlChannel::Connect({Epoch(3), rank, size, kAddress, secret, tls_, 0, port_},
                                   kAddress, port_->number(), kLong);
  }
  std::unique_ptr<ControlChannel>& operator[](int rank) { return channels_[rank]; }

 private:
  const std::shared_ptr<const net::TlsContext> tls_;
  const std::shared_ptr<collectives::peer::PeerPort> port_;  // of rank 0
  collectives::conformance::RankGroup memory_{collectives::shm::MakeShmBackend()};
  std::vector<std::unique_ptr<ControlChannel>> channels_;
};

class ControlChannelTest : public testing::TestWithParam<Under> {};
INSTANTIATE_TEST_SUITE_P(Tcp, ControlChannelTest, testing::Values(Under::kTcp));
INSTANTIATE_TEST_SUITE_P(Tls, ControlChannelTest, testing::Values(Under::kTls));
INSTANTIATE_TEST_SUITE_P(SharedMemory, ControlChannelTest, testing::Values(Under::kSharedMemory));

// The next `count` messages, as "peer:bytes".
std::vector<std::string> Read(ControlChannel& channel, size_t count) {
  std::vector<std::string> read;
  while (read.size() < count) {
    auto messages = channel.Receive(kLong);
    EXPECT_TRUE(messages.ok()) << messages.status();
    if (!messages.ok()) break;
    for (const auto& message : *messages) {
      read.push_back(absl::StrCat(message.peer, ":", message.bytes));
    }
  }
  return read;
}

// The error that ends a rank's wait. The engine's thread waits so.
absl::Status WaitAsTheEngine(ControlChannel& channel) {
  while (true) {
    const absl::Status status = channel.Receive(absl::ZeroDuration()).status();
    if (!status.ok()) return status;
    if (channel.PrepareSleep()) channel.AwaitWake(absl::InfiniteDuration());
  }
}

// Stands between two ranks on the network, and may change what one of them sends.
class Between {
 public:
  explicit Between(int root_port)
      : listener_(*net::ListenOnAnyPort(kAddress)),
        thread_([this, root_port] { Run(root_port); }) {}
  ~Between() {
    over_ = true;
    thread_.join();
  }
  int port() const { return *net::PortOf(listener_.get()); }
  // Adds one to the byte at `offset` of what the connecting rank sends next, counted from there.
  void Change(int offset) { change_ = offset; }

 private:
  void Run(int root_port) {
    Fd member;
    while (!member.valid() && !over_) member = Fd(accept4(listener_.get(), nullptr, nullptr, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(root_port));
    const Fd root(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(root.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    while (!over_) {
      pollfd both[] = {{member.get(), POLLIN, 0}, {root.get(), POLLIN, 0}};
      poll(both, 2, 10);
      if (both[0].revents != 0 && !PassOn(member.get(), root.get(), true)) return;
      if (both[1].revents != 0 && !PassOn(root.get(), member.get(), false)) return;
    }
  }
  bool PassOn(int from, int to, bool may_change) {
    char bytes[4096];
    const ssize_t got = recv(from, bytes, sizeof(bytes), 0);
    if (got <= 0) return false;
    if (may_change && change_ >= 0) ++bytes[change_.exchange(-1)];
    return send(to, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) == got;
  }

  const Fd listener_;
  std::atomic<bool> over_{false};
  std::atomic<int> change_{-1};
  std::thread thread_;
};

// Two ranks with somebody between them who changes the byte at this offset of a message of rank 1;
// the error of rank 0.
absl::Status ErrorAfterChange(Under under, int offset) {
  const std::shared_ptr<const net::TlsContext> tls = under == Under::kTls ? NewTls() : nullptr;
  const auto port = *collectives::peer::PeerPort::Open(kAddress);
  Between between(port->number());
  std::unique_ptr<ControlChannel> member;
  std::thread connecting([&] {
    member = *ControlChannel::Connect({Epoch(3), 1, 2, kAddress, "secret", tls}, kAddress,
                                      between.port(), kLong);
  });
  const std::unique_ptr<ControlChannel> root =
      *ControlChannel::Connect({Epoch(3), 0, 2, kAddress, "secret", tls, 0, port}, kAddress, 0,
                               kLong, /*part_patience=*/absl::Milliseconds(50));
  connecting.join();
  EXPECT_TRUE(member->Send(0, "as it is").ok());
  EXPECT_EQ(Read(*root, 1), std::vector<std::string>{"1:as it is"});
  between.Change(offset);
  EXPECT_TRUE(member->Send(0, "to be changed").ok());
  return WaitAsTheEngine(*root);
}

TEST(ChangedControlTest, LengthOfAFrame_EndsTheWait) {
  const absl::Status status = ErrorAfterChange(Under::kTcp, 3);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "only a part of its message")) << status;
}

TEST(ChangedControlTest, LengthOfATlsRecord_EndsTheWait) {
  const absl::Status status = ErrorAfterChange(Under::kTls, 4);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "only a part of its message")) << status;
}

TEST(ChangedControlTest, Contents_AreNotTaken) {
  for (const Under under : {Under::kTcp, Under::kTls}) {
    const absl::Status status = ErrorAfterChange(under, 9);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "changed on the way")) << status;
  }
}

TEST_P(ControlChannelTest, Messages_ArriveWholeAndInOrder) {
  Star star(3, GetParam());
  ASSERT_TRUE(star[1]->Send(0, "one").ok());
  ASSERT_TRUE(star[1]->Send(0, "").ok());
  EXPECT_EQ(Read(*star[0], 2), (std::vector<std::string>{"1:one", "1:"}));
  ASSERT_TRUE(star[0]->Send(2, "two").ok());
  EXPECT_EQ(Read(*star[2], 1), std::vector<std::string>{"0:two"});
}

TEST_P(ControlChannelTest, MessageLargerThanTheSocket_IsSentWhileThePeerReads) {
  Star star(2, GetParam());
  const std::string large(40 << 20, 'x');  // several frames
  ASSERT_TRUE(star[0]->Send(1, large).ok());
  ASSERT_TRUE(star[0]->Send(1, "after").ok());
  std::thread reader([&] {
    EXPECT_EQ(Read(*star[1], 2), (std::vector<std::string>{"0:" + large, "0:after"}));
  });
  EXPECT_TRUE(star[0]->Flush(kLong).ok());
  reader.join();
}

TEST_P(ControlChannelTest, Flush_PeerDoesNotRead_NamesIt) {
  Star star(2, GetParam());
  ASSERT_TRUE(star[0]->Send(1, std::string(15 << 20, 'x')).ok());
  const absl::Status status = star[0]->Flush(absl::Milliseconds(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(status.message(), "rank 1"));
}

TEST_P(ControlChannelTest, Wake_EndsReceive) {
  Star star(2, GetParam());
  std::thread waker([&] { star[0]->Wake(); });
  const auto messages = star[0]->Receive(absl::InfiniteDuration());
  EXPECT_TRUE(messages.ok() && messages->empty());
  waker.join();
  EXPECT_TRUE(star[0]->Receive(absl::ZeroDuration())->empty());
}

TEST_P(ControlChannelTest, Wake_DuringAFlush_IsNotSleptThrough) {
  Star star(2, GetParam());
  ASSERT_TRUE(star[0]->Send(1, std::string(15 << 20, 'x')).ok());
  star[0]->Wake();
  EXPECT_TRUE(absl::IsDeadlineExceeded(star[0]->Flush(absl::Milliseconds(1))));
  EXPECT_FALSE(star[0]->PrepareSleep());
  ASSERT_TRUE(star[0]->Receive(absl::ZeroDuration()).ok());
  EXPECT_TRUE(star[0]->PrepareSleep());
}

TEST_P(ControlChannelTest, PeerGone_IsReportedAfterItsLastMessageAndOthersStay) {
  Star star(3, GetParam());
  ASSERT_TRUE(star[1]->Send(0, "last words").ok());
  star[1].reset();
  EXPECT_EQ(Read(*star[0], 1), std::vector<std::string>{"1:last words"});
  const absl::Status status = star[0]->Receive(kLong).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), "rank 1 is gone"));
  EXPECT_EQ(star[0]->Send(1, "x"), status);
  ASSERT_TRUE(star[0]->Send(2, "still here").ok());
  EXPECT_EQ(Read(*star[2], 1), std::vector<std::string>{"0:still here"});
}

TEST_P(ControlChannelTest, Finish_PeerStillSends_DeliversSentMessages) {
  Star star(2, GetParam());
  ASSERT_TRUE(star[1]->Send(0, "unread").ok());
  ASSERT_TRUE(star[0]->Send(1, "good bye").ok());
  std::thread leaver([&] {
    star[0]->Finish(kLong, [] { return false; });
    star[0].reset();
  });
  EXPECT_EQ(Read(*star[1], 1), std::vector<std::string>{"0:good bye"});
  star[1]->Finish(kLong, [] { return false; });
  leaver.join();
}

TEST_P(ControlChannelTest, WorldOfOne_NeedsNobody) {
  Star star(1, GetParam());
  star[0]->Wake();
  EXPECT_TRUE(star[0]->Receive(kLong)->empty());
  star[0]->Finish(kLong, [] { return false; });
}

TEST(TcpControlChannelTest, Connect_StrangersAreDroppedAndMembersComeIn) {
  const auto port = *collectives::peer::PeerPort::Open(kAddress);
  auto connect = [&](int rank, const std::string& secret, absl::Duration timeout) {
    return ControlChannel::Connect({Epoch(1), rank, 2, kAddress, secret, nullptr, 0, port},
                                   kAddress, port->number(), timeout);
  };
  absl::StatusOr<std::unique_ptr<ControlChannel>> root;
  std::thread accept([&] { root = connect(0, "secret", kLong); });
  const absl::Time deadline = Clock::Real().Now() + kLong;
  Fd silent = *net::ConnectTo(kAddress, port->number(), deadline);
  Fd rude = *net::ConnectTo(kAddress, port->number(), deadline);
  const std::string noise(100, 'x');
  ASSERT_EQ(send(rude.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 100);
  EXPECT_EQ(connect(1, "wrong", kLong).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(connect(1, "secret", kLong).ok());
  accept.join();
  EXPECT_TRUE(root.ok()) << root.status();
}

// A peer without TLS, or without a certificate of this job, is refused; the members are admitted.
TEST(TcpControlChannelTest, Connect_UnderTls_OthersAreRefused) {
  const auto port = *collectives::peer::PeerPort::Open(kAddress);
  const auto tls = NewTls();
  auto connect = [&](int rank, const std::shared_ptr<const net::TlsContext>& own,
                     WaitBounds bounds) {
    return ControlChannel::Connect({Epoch(1), rank, 2, kAddress, "secret", own, 0, port}, kAddress,
                                   port->number(), bounds);
  };
  absl::StatusOr<std::unique_ptr<ControlChannel>> root;
  std::thread accept([&] { root = connect(0, tls, kLong); });
  EXPECT_EQ(connect(1, NewTls(), kLong).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(connect(1, nullptr, absl::Milliseconds(50)).ok());
  EXPECT_TRUE(connect(1, tls, kLong).ok());
  accept.join();
  EXPECT_TRUE(root.ok()) << root.status();
}

TEST(TcpControlChannelTest, Connect_NotAllCome_NamesTheMissing) {
  const auto port = *collectives::peer::PeerPort::Open(kAddress);
  const auto root = ControlChannel::Connect({Epoch(1), 0, 3, kAddress, "secret", nullptr, 0, port},
                                            kAddress, 0, absl::Milliseconds(1));
  EXPECT_EQ(root.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(root.status().message(), "rank 1, rank 2"));
}

TEST(TcpControlChannelTest, Connect_Cancelled_EndsAtOnceWithThatStatus) {
  const absl::Status why = absl::AbortedError("rank 1 has died");
  const auto silent = *collectives::peer::PeerPort::Open(kAddress);
  const auto own = *collectives::peer::PeerPort::Open(kAddress);
  for (int rank : {0, 1}) {  // rank 0 accepts nobody, and nobody answers rank 1
    Cancellation cancellation;
    std::thread cancel([&] { cancellation.Cancel(why); });
    const auto channel =
        ControlChannel::Connect({Epoch(1), rank, 2, kAddress, "secret", nullptr, 0, own}, kAddress,
                                silent->number(), {absl::InfiniteDuration(), &cancellation});
    cancel.join();
    EXPECT_TRUE(absl::StrContains(channel.status().message(), why.message())) << channel.status();
    EXPECT_EQ(channel.status().code(), why.code());
  }
}

TEST_P(ControlChannelTest, Finish_GivenUp_DoesNotWaitForThePeer) {
  Star star(2, GetParam());
  star[0]->Wake();
  star[0]->Finish(absl::InfiniteDuration(), [] { return true; });
}

TEST_P(ControlChannelTest, Finish_HandsOverWhatStillComesFromAllPeers) {
  Star star(3, GetParam());
  std::vector<std::thread> members;
  for (int rank : {1, 2}) {
    members.emplace_back([&star, rank] {
      EXPECT_TRUE(star[rank]->Send(0, absl::StrCat("last words of ", rank)).ok());
      star[rank]->Finish(kLong, [] { return false; });
    });
  }
  std::vector<std::string> heard;
  star[0]->Finish(
      kLong, [] { return false; },
      [&](ControlChannel::Message message) { heard.push_back(std::move(message.bytes)); });
  for (std::thread& member : members) member.join();
  std::sort(heard.begin(), heard.end());
  EXPECT_EQ(heard, (std::vector<std::string>{"last words of 1", "last words of 2"}));
}

TEST(TcpControlChannelTest, Connect_NobodyListens_IsUnavailable) {
  // Bound, so that nobody else gets the port and listens there meanwhile.
  const Fd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const auto member = ControlChannel::Connect({Epoch(1), 1, 2, kAddress, "secret"}, kAddress,
                                              *net::PortOf(silent.get()), kLong);
  EXPECT_EQ(member.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd::worker_runtime::control
