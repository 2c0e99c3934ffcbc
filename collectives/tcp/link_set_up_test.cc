// LinkAcceptor and DialLink: peers, and strangers that misbehave in all ways.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>  // NOLINT: a peer that dials
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/peer/peer_opening.h"
#include "base/net/strangers_test_util.h"
#include "base/net/tcp_socket.h"
#include "collectives/peer_handshake.h"
#include "collectives/tcp/link_acceptor.h"
#include "collectives/tcp/link_address.h"
#include "collectives/tcp/link_dialer.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::collectives::tcp {
namespace {

constexpr int kSize = 3;
constexpr size_t kMostStrangers = LinkAcceptor::kSpareStrangers + kSize;
const absl::Time kNever = absl::InfiniteFuture();

GroupInfo Group(int rank, const std::string& secret = "secret") {
  return {Epoch(5), rank, kSize, "127.0.0.1", secret};
}

bool Mentions(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

bool Connects(const Fd& fd, const net::SocketAddress& to) {
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) == 0;
}

// A connection to `door` that sends nothing.
Fd Knock(const std::string& door) {
  const auto address = ParseLinkAddress(door);
  Fd fd(socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(Connects(fd, *address));
  return fd;
}

int NumberOf(const Fd& fd) { return fd.get(); }
int NumberOf(const net::Wire& wire) { return wire.fd(); }

template <typename Connection>
void Say(const Connection& to, const std::string& words) {
  EXPECT_EQ(send(NumberOf(to), words.data(), words.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(words.size()));
}

// Blocks until the acceptor closes the connection.
template <typename Connection>
void AwaitHangUp(const Connection& to) {
  char byte;
  while (recv(NumberOf(to), &byte, 1, 0) > 0) continue;
}

class LinkSetUpTest : public testing::Test {
 protected:
  void SetUp() override { Open(absl::Hours(1)); }

  void Open(absl::Duration patience) {
    auto started = LinkAcceptor::Start(Group(0), patience);
    ASSERT_TRUE(started.ok()) << started.status();
    acceptor_ = *std::move(started);
  }

  const std::string& door() const { return acceptor_->address(); }

  // A byte from rank 1 arrives: both have the same connection.
  void ExpectRank1GetsIn() {
    const auto dialed = DialLink(Group(1), 0, door(), kNever, nullptr);
    ASSERT_TRUE(dialed.ok()) << dialed.status();
    const auto arrived = acceptor_->Await(1, kNever, nullptr);
    ASSERT_TRUE(arrived.ok()) << arrived.status();
    Say(*dialed, "1");
    pollfd poll_fd = {arrived->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&poll_fd, 1, -1), 1);
    char byte;
    ASSERT_EQ(recv(arrived->fd(), &byte, 1, 0), 1);
    EXPECT_EQ(byte, '1');
  }

  std::unique_ptr<LinkAcceptor> acceptor_;
};

TEST_F(LinkSetUpTest, APeerGetsIn) { ExpectRank1GetsIn(); }

TEST_F(LinkSetUpTest, SilentStrangersDoNotKeepAPeerOut) {
  std::vector<Fd> strangers;
  for (size_t i = 0; i < kMostStrangers + 100; ++i) strangers.push_back(Knock(door()));
  for (size_t i = 0; i < 100; ++i) AwaitHangUp(strangers[i]);  // the oldest were closed
  ExpectRank1GetsIn();
}

TEST_F(LinkSetUpTest, StrangersWhoTalkDoNotKeepAPeerOut) {
  const GroupInfo rank1 = Group(1);
  std::vector<Fd> strangers;
  for (size_t i = 0; i < kMostStrangers + 100; ++i) {
    strangers.push_back(Knock(door()));
    Say(strangers.back(), MakeDialerHandshake(kLinkProtocol, rank1, 0)->Start());  // and no proof
  }
  for (size_t i = 0; i < 100; ++i) AwaitHangUp(strangers[i]);
  ExpectRank1GetsIn();
}

// With TLS a peer within its handshake has sent nothing of its own protocol yet. It keeps its place
// among ClientHellos from another address.
TEST_F(LinkSetUpTest, ClientHellosFromElsewhereDoNotDriveOutASlowPeer) {
  const auto authority = *rendezvous::security::JobAuthority::Create("job");
  const rendezvous::security::PeerCredentials own = *authority->IssueForHost("host");
  GroupInfo rank0 = Group(0), rank1 = Group(1);
  rank0.tls = rank1.tls =
      *net::TlsContext::Create({own.ca_certificate, own.certificate, own.private_key});
  acceptor_ = *LinkAcceptor::Start(rank0, absl::Hours(1));
  const auto to = ParseLinkAddress(door());
  const std::string text =
      absl::StrCat("127.0.0.1:", ntohs(reinterpret_cast<const sockaddr_in&>(to->storage).sin_port));
  net::Wire slow = net::BeginHandshake("127.0.0.1", text, rank1.tls);
  const std::vector<Fd> crowd = net::CrowdOfClientHellos("127.0.0.2", text, rank1.tls,
                                                         kMostStrangers + 100, kMostStrangers - 1);
  net::peer::PeerOpening opening(std::move(slow), [&](std::string binding) {
    return MakeDialerHandshake(kLinkProtocol, rank1, 0, std::move(binding));
  });
  while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
    pollfd poll_fd = {opening.fd(), POLLIN, 0};
    poll(&poll_fd, 1, -1);
  }
  EXPECT_EQ(opening.Advance(), net::peer::PeerOpening::Progress::kProved) << opening.status();
}

TEST_F(LinkSetUpTest, WhoTalksNonsenseIsHungUpOn) {
  const Fd stranger = Knock(door());
  // Data of at least the length of a peer's hello, which is refused as a whole.
  Say(stranger, "GET / HTTP/1.1\r\nHost: a.service.that.is.somewhere.else\r\nAccept: */*\r\n\r\n");
  AwaitHangUp(stranger);
  ExpectRank1GetsIn();
}

TEST_F(LinkSetUpTest, WhoSaysNothingIsHungUpOnInTheEnd) {
  Open(absl::Milliseconds(20));
  const Fd stranger = Knock(door());
  AwaitHangUp(stranger);
}

TEST_F(LinkSetUpTest, ResetConnectionsDoNoHarm) {
  for (int i = 0; i < 50; ++i) {
    const Fd stranger = Knock(door());
    const linger reset = {1, 0};
    setsockopt(stranger.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  }
  ExpectRank1GetsIn();
}

// RAII: this process can't open further files.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const Fd next(dup(0));
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(next.get());
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST_F(LinkSetUpTest, WithoutFilesAStrangerMakesRoomForAPeer) {
  std::vector<Fd> strangers;
  strangers.push_back(Knock(door()));
  strangers.push_back(Knock(door()));
  // The acceptor refuses this connection only after it has accepted the two before.
  const Fd nonsense = Knock(door());
  Say(nonsense, std::string(100, 'x'));
  AwaitHangUp(nonsense);
  const GroupInfo rank1 = Group(1);
  const auto address = ParseLinkAddress(door());
  Fd peer(socket(AF_INET, SOCK_STREAM, 0));
  NoMoreFiles no_more;
  ASSERT_TRUE(Connects(peer, *address));
  fcntl(peer.get(), F_SETFL, O_NONBLOCK);
  net::peer::PeerOpening opening(
      net::Wire(std::move(peer), nullptr, net::TlsEnd::kConnects), [&](std::string binding) {
        return MakeDialerHandshake(kLinkProtocol, rank1, 0, std::move(binding));
      });
  while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
    pollfd poll_fd = {opening.fd(), POLLIN, 0};
    poll(&poll_fd, 1, -1);
  }
  EXPECT_EQ(opening.Advance(), net::peer::PeerOpening::Progress::kProved) << opening.status();
  EXPECT_TRUE(acceptor_->Await(1, kNever, nullptr).ok());
}

// There is no stranger to close: the acceptor pauses until files can be opened again.
TEST_F(LinkSetUpTest, WithoutFilesAPeerWaitsOutside) {
  const GroupInfo rank1 = Group(1);
  const auto address = ParseLinkAddress(door());
  Fd peer(socket(AF_INET, SOCK_STREAM, 0));
  {
    NoMoreFiles no_more;
    ASSERT_TRUE(Connects(peer, *address));
    Say(peer, MakeDialerHandshake(kLinkProtocol, rank1, 0)->Start());
  }
  char byte;
  EXPECT_EQ(recv(peer.get(), &byte, 1, 0), 1);
}

TEST_F(LinkSetUpTest, Await_NamesTheRankAndCountsStrangers) {
  AwaitHangUp([&] {
    Fd stranger = Knock(door());
    Say(stranger, std::string(100, 'x'));
    return stranger;
  }());
  const auto arrived = acceptor_->Await(2, absl::InfinitePast(), nullptr);
  EXPECT_EQ(arrived.status(),
            absl::DeadlineExceededError(
                "no connection in time from rank 2; unauthenticated connections refused: 1"));
}

TEST_F(LinkSetUpTest, Await_EndsWhenItIsCancelled) {
  Cancellation cancellation;
  std::thread canceller([&] { cancellation.Cancel(absl::AbortedError("enough")); });
  EXPECT_EQ(acceptor_->Await(1, kNever, &cancellation).status(), absl::AbortedError("enough"));
  canceller.join();
}

// A peer whose connection was closed after its proof dials again.
TEST_F(LinkSetUpTest, TheNewestConnectionCountsUntilItIsHandedOver) {
  const auto first = DialLink(Group(1), 0, door(), kNever, nullptr);
  const auto second = DialLink(Group(1), 0, door(), kNever, nullptr);
  ASSERT_TRUE(first.ok() && second.ok());
  AwaitHangUp(*first);
  EXPECT_TRUE(acceptor_->Await(1, kNever, nullptr).ok());
  const auto third = DialLink(Group(1), 0, door(), kNever, nullptr);
  ASSERT_TRUE(third.ok()) << third.status();
  AwaitHangUp(*third);
}

TEST_F(LinkSetUpTest, Drop_HangsUpOnWhoeverWasNotAskedFor) {
  const auto before = DialLink(Group(1), 0, door(), kNever, nullptr);
  acceptor_->Drop();
  AwaitHangUp(*before);
  const auto after = DialLink(Group(2), 0, door(), kNever, nullptr);
  AwaitHangUp(*after);
}

TEST_F(LinkSetUpTest, Dial_WhoDoesNotKnowTheSecretLearnsIt) {
  const auto dialed = DialLink(Group(1, "guess"), 0, door(), kNever, nullptr);
  EXPECT_EQ(dialed.status().code(), absl::StatusCode::kPermissionDenied) << dialed.status();
  EXPECT_TRUE(Mentions(dialed.status(), "rank 0 does not know")) << dialed.status();
}

TEST_F(LinkSetUpTest, Dial_NobodyThere) {
  const std::string gone = door();
  acceptor_.reset();
  const auto dialed = DialLink(Group(1), 0, gone, kNever, nullptr);
  EXPECT_EQ(dialed.status().code(), absl::StatusCode::kUnavailable) << dialed.status();
  EXPECT_TRUE(Mentions(dialed.status(), "can't connect to rank 0")) << dialed.status();
}

TEST(LinkDialerTest, WhoIsHungUpOnTriesAgain) {
  const auto listener = net::ListenOnAnyPort("127.0.0.1");
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string door = *LinkAddressOf(listener->get());
  const GroupInfo rank0 = Group(0);
  std::thread acceptor([&] {
    for (int turn = 0; turn < 4; ++turn) {
      pollfd poll_fd = {listener->get(), POLLIN, 0};
      poll(&poll_fd, 1, -1);
      Fd fd(accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK));
      if (turn < 3) continue;  // hangs up
      net::peer::PeerOpening opening(
          net::Wire(std::move(fd), nullptr, net::TlsEnd::kAccepts), [&](std::string binding) {
            return MakeAcceptorHandshake(kLinkProtocol, rank0, std::move(binding));
          });
      while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
        pollfd more = {opening.fd(), POLLIN, 0};
        poll(&more, 1, -1);
      }
    }
  });
  const auto dialed = DialLink(Group(1), 0, door, kNever, nullptr);
  EXPECT_TRUE(dialed.ok()) << dialed.status();
  acceptor.join();
}

TEST(LinkDialerTest, GivesUpInTimeAndWhenCancelled) {
  const auto listener = net::ListenOnAnyPort("127.0.0.1");  // never accepts
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string door = *LinkAddressOf(listener->get());
  EXPECT_EQ(DialLink(Group(1), 0, door, absl::InfinitePast(), nullptr).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  Cancellation cancellation;
  cancellation.Cancel(absl::AbortedError("enough"));
  EXPECT_EQ(DialLink(Group(1), 0, door, kNever, &cancellation).status(),
            absl::AbortedError("enough"));
}

TEST(LinkAddressTest, IsAsLongForBothVersions) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto listener = net::ListenOnAnyPort(address);
    ASSERT_TRUE(listener.ok()) << listener.status();
    const auto bytes = LinkAddressOf(listener->get());
    EXPECT_EQ(bytes->size(), kLinkAddressBytes);
    Knock(*bytes);
  }
  EXPECT_FALSE(ParseLinkAddress("short").ok());
}

}  // namespace
}  // namespace hvd::collectives::tcp
