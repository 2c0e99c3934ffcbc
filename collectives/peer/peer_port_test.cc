#include "collectives/peer/peer_port.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <thread>  // NOLINT: a peer that dials
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/peer/peer_dialer.h"
#include "base/net/peer/peer_opening.h"
#include "base/net/strangers_test_util.h"
#include "base/net/tcp_socket.h"
#include "collectives/peer/peer_handshake.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::collectives::peer {
namespace {

constexpr int kSize = 3;
constexpr size_t kMostStrangers = PeerPort::kSpareStrangers + kSize;
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

// A connection that sends nothing.
Fd Knock(const net::SocketAddress& to) {
  Fd fd(socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(Connects(fd, to));
  return fd;
}

absl::StatusOr<net::Wire> Dial(const net::SocketAddress& to, const GroupInfo& group,
                               Purpose purpose = Purpose::kTensors) {
  return net::peer::Dial({to, group.tls,
                          [&](std::string binding) {
                            return MakeDialerHandshake(purpose, group, /*peer=*/0,
                                                       std::move(binding));
                          }},
                         kNever, nullptr);
}

int NumberOf(const Fd& fd) { return fd.get(); }
int NumberOf(const net::Wire& wire) { return wire.fd(); }

template <typename Connection>
void Say(const Connection& to, const std::string& words) {
  EXPECT_EQ(send(NumberOf(to), words.data(), words.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(words.size()));
}

// Blocks until the other end closes the connection.
template <typename Connection>
void AwaitHangUp(const Connection& to) {
  char byte;
  while (recv(NumberOf(to), &byte, 1, 0) > 0) continue;
}

// A byte from one end reaches the other: both have the same connection.
void ExpectConnected(const net::Wire& dialer, const net::Wire& acceptor) {
  Say(dialer, "1");
  pollfd poll_fd = {acceptor.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&poll_fd, 1, -1), 1);
  char byte;
  ASSERT_EQ(recv(acceptor.fd(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, '1');
}

class PeerPortTest : public testing::Test {
 protected:
  void SetUp() override { Open(Group(0), absl::Hours(1)); }

  void Open(GroupInfo rank0, absl::Duration patience) {
    auto opened = PeerPort::Open("127.0.0.1", patience);
    ASSERT_TRUE(opened.ok()) << opened.status();
    port_ = *std::move(opened);
    inbox_ = Enter(std::move(rank0));
  }

  std::shared_ptr<PeerInbox> Enter(GroupInfo group) {
    group.port = port_;
    return *PeerInbox::Enter(group);
  }

  const net::SocketAddress& address() const { return port_->address(); }

  // The connection of rank 1.
  net::Wire Take(PeerInbox& inbox, Purpose purpose = Purpose::kTensors) {
    auto taken = inbox.Take(purpose, {1}, kNever, nullptr);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return std::move(taken->front());
  }

  void ExpectRank1GetsIn() {
    const auto dialed = Dial(address(), Group(1));
    ASSERT_TRUE(dialed.ok()) << dialed.status();
    ExpectConnected(*dialed, Take(*inbox_));
  }

  std::shared_ptr<PeerPort> port_;
  std::shared_ptr<PeerInbox> inbox_;
};

TEST_F(PeerPortTest, APeerGetsIn) { ExpectRank1GetsIn(); }

TEST_F(PeerPortTest, SilentStrangersDoNotKeepAPeerOut) {
  std::vector<Fd> strangers;
  for (size_t i = 0; i < kMostStrangers + 100; ++i) strangers.push_back(Knock(address()));
  for (size_t i = 0; i < 100; ++i) AwaitHangUp(strangers[i]);  // the oldest were closed
  ExpectRank1GetsIn();
}

TEST_F(PeerPortTest, StrangersThatSend_DoNotBlockAPeer) {
  const GroupInfo rank1 = Group(1);
  std::vector<Fd> strangers;
  for (size_t i = 0; i < kMostStrangers + 100; ++i) {
    strangers.push_back(Knock(address()));
    Say(strangers.back(), MakeDialerHandshake(Purpose::kTensors, rank1, 0)->Start());  // no proof
  }
  for (size_t i = 0; i < 100; ++i) AwaitHangUp(strangers[i]);
  ExpectRank1GetsIn();
}

// With TLS a peer within its handshake has sent nothing of its own protocol yet. It keeps its place
// among ClientHellos from another address.
TEST_F(PeerPortTest, ClientHellosFromElsewhere_DoNotDisplaceASlowPeer) {
  const auto authority = *rendezvous::security::JobAuthority::Create("job");
  const rendezvous::security::PeerCredentials own = *authority->IssueForHost("host");
  GroupInfo rank0 = Group(0), rank1 = Group(1);
  rank0.tls = rank1.tls =
      *net::TlsContext::Create({own.ca_certificate, own.certificate, own.private_key});
  inbox_.reset();
  Open(rank0, absl::Hours(1));
  const std::string text = absl::StrCat("127.0.0.1:", port_->number());
  net::Wire slow = net::BeginHandshake("127.0.0.1", text, rank1.tls);
  const std::vector<Fd> crowd = net::CrowdOfClientHellos("127.0.0.2", text, rank1.tls,
                                                         kMostStrangers + 100, kMostStrangers - 1);
  net::peer::PeerOpening opening(std::move(slow), [&](std::string binding) {
    return MakeDialerHandshake(Purpose::kTensors, rank1, 0, std::move(binding));
  });
  while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
    pollfd poll_fd = {opening.fd(), POLLIN, 0};
    poll(&poll_fd, 1, -1);
  }
  EXPECT_EQ(opening.Advance(), net::peer::PeerOpening::Progress::kProved) << opening.status();
}

TEST_F(PeerPortTest, PeerThatSendsGarbage_IsDisconnected) {
  const Fd stranger = Knock(address());
  // Data of at least the length of a peer's hello, which is refused as a whole.
  Say(stranger, "GET / HTTP/1.1\r\nHost: a.service.that.is.somewhere.else\r\nAccept: */*\r\n\r\n");
  AwaitHangUp(stranger);
  ExpectRank1GetsIn();
}

TEST_F(PeerPortTest, SilentPeer_IsDisconnectedAtTheDeadline) {
  inbox_.reset();
  Open(Group(0), absl::Milliseconds(20));
  const Fd stranger = Knock(address());
  AwaitHangUp(stranger);
}

TEST_F(PeerPortTest, ResetConnectionsDoNoHarm) {
  for (int i = 0; i < 50; ++i) {
    const Fd stranger = Knock(address());
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

TEST_F(PeerPortTest, WithoutFilesAStrangerMakesRoomForAPeer) {
  std::vector<Fd> strangers;
  strangers.push_back(Knock(address()));
  strangers.push_back(Knock(address()));
  // The port refuses this connection only after it has accepted the two before.
  const Fd nonsense = Knock(address());
  Say(nonsense, std::string(100, 'x'));
  AwaitHangUp(nonsense);
  const GroupInfo rank1 = Group(1);
  Fd peer(socket(AF_INET, SOCK_STREAM, 0));
  NoMoreFiles no_more;
  ASSERT_TRUE(Connects(peer, address()));
  fcntl(peer.get(), F_SETFL, O_NONBLOCK);
  net::peer::PeerOpening opening(
      net::Wire(std::move(peer), nullptr, net::TlsEnd::kConnects), [&](std::string binding) {
        return MakeDialerHandshake(Purpose::kTensors, rank1, 0, std::move(binding));
      });
  while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
    pollfd poll_fd = {opening.fd(), POLLIN, 0};
    poll(&poll_fd, 1, -1);
  }
  EXPECT_EQ(opening.Advance(), net::peer::PeerOpening::Progress::kProved) << opening.status();
  EXPECT_TRUE(inbox_->Take(Purpose::kTensors, {1}, kNever, nullptr).ok());
}

// There is no stranger to close: the port pauses until files can be opened again.
TEST_F(PeerPortTest, WithoutFilesAPeerWaitsOutside) {
  const GroupInfo rank1 = Group(1);
  Fd peer(socket(AF_INET, SOCK_STREAM, 0));
  {
    NoMoreFiles no_more;
    ASSERT_TRUE(Connects(peer, address()));
    Say(peer, MakeDialerHandshake(Purpose::kTensors, rank1, 0)->Start());
  }
  char byte;
  EXPECT_EQ(recv(peer.get(), &byte, 1, 0), 1);
}

TEST_F(PeerPortTest, Take_NamesTheRanksAndCountsStrangers) {
  AwaitHangUp([&] {
    Fd stranger = Knock(address());
    Say(stranger, std::string(100, 'x'));
    return stranger;
  }());
  // No rank is reported as unreached: rank 1 or 2 may have been waiting for another one.
  EXPECT_EQ(inbox_->Take(Purpose::kTensors, {1, 2}, absl::InfinitePast(), nullptr).status(),
            absl::DeadlineExceededError("no connection in time from rank 1, rank 2; "
                                        "unauthenticated connections refused: 1"));
}

TEST_F(PeerPortTest, Take_EndsWhenItIsCancelled) {
  Cancellation cancellation;
  std::thread canceller([&] { cancellation.Cancel(absl::AbortedError("enough")); });
  EXPECT_EQ(inbox_->Take(Purpose::kTensors, {1}, kNever, &cancellation).status(),
            absl::AbortedError("enough"));
  canceller.join();
}

// A peer whose connection was closed after its proof dials again.
TEST_F(PeerPortTest, TheNewestConnectionCountsUntilItIsTaken) {
  const auto first = Dial(address(), Group(1));
  const auto second = Dial(address(), Group(1));
  ASSERT_TRUE(first.ok() && second.ok());
  AwaitHangUp(*first);
  Take(*inbox_);
  const auto third = Dial(address(), Group(1));
  ASSERT_TRUE(third.ok()) << third.status();
  AwaitHangUp(*third);
}

TEST_F(PeerPortTest, TheNewestConnectionCountsUntilAllHaveCome) {
  const auto first = Dial(address(), Group(1));
  ASSERT_TRUE(first.ok());
  std::thread all([&] {
    const auto taken = inbox_->Take(Purpose::kTensors, {1, 2}, kNever, nullptr);
    ASSERT_TRUE(taken.ok()) << taken.status();
    char byte;
    pollfd poll_fd = {(*taken)[0].fd(), POLLIN, 0};
    ASSERT_EQ(poll(&poll_fd, 1, -1), 1);
    EXPECT_EQ(recv((*taken)[0].fd(), &byte, 1, 0), 1);
  });
  const auto second = Dial(address(), Group(1));
  AwaitHangUp(*first);
  Say(*second, "1");
  const auto other = Dial(address(), Group(2));
  all.join();
}

TEST_F(PeerPortTest, TakeArrived_DoesNotWaitAndIsToldOfNews) {
  EXPECT_TRUE(inbox_->TakeArrived(Purpose::kTensors).empty());
  const auto dialed = Dial(address(), Group(1));
  ASSERT_TRUE(dialed.ok()) << dialed.status();
  pollfd news = {inbox_->news(Purpose::kTensors), POLLIN, 0};
  ASSERT_EQ(poll(&news, 1, -1), 1);
  const std::map<int, net::Wire> arrived = inbox_->TakeArrived(Purpose::kTensors);
  ASSERT_EQ(arrived.size(), 1u);
  ExpectConnected(*dialed, arrived.at(1));
  EXPECT_EQ(poll(&news, 1, 0), 0);
  EXPECT_TRUE(inbox_->TakeArrived(Purpose::kTensors).empty());
}

TEST_F(PeerPortTest, Drop_ClosesConnectionsThatWereNotTaken) {
  const auto before = Dial(address(), Group(1));
  const auto control = Dial(address(), Group(1), Purpose::kControl);
  inbox_->Drop(Purpose::kTensors);
  AwaitHangUp(*before);
  AwaitHangUp(*Dial(address(), Group(2)));
  ExpectConnected(*control, Take(*inbox_, Purpose::kControl));
}

// Nobody has asked about control connections when one comes, and it holds up no other one.
TEST_F(PeerPortTest, ConnectionForOtherPurpose_WaitsWithoutBlockingOthers) {
  const auto control = Dial(address(), Group(1), Purpose::kControl);
  ASSERT_TRUE(control.ok()) << control.status();
  ExpectRank1GetsIn();
  ExpectConnected(*control, Take(*inbox_, Purpose::kControl));
}

// As long as no world is known, a connection waits in the backlog. It comes in when its group does,
// however silent the strangers before it are.
TEST_F(PeerPortTest, PeerBeforeTheWorld_GetsInLater) {
  inbox_.reset();
  port_ = *PeerPort::Open("127.0.0.1");
  std::vector<Fd> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(Knock(address()));
  const GroupInfo rank1 = Group(1);
  const Fd early = Knock(address());
  Say(early, MakeDialerHandshake(Purpose::kControl, rank1, 0)->Start());
  EXPECT_FALSE(port_->in_use());
  inbox_ = Enter(Group(0));
  EXPECT_TRUE(port_->in_use());
  char byte;
  EXPECT_EQ(recv(early.get(), &byte, 1, 0), 1);
}

// It is hung up on and dials again, until the group is there.
TEST_F(PeerPortTest, PeerBeforeItsGroup_GetsInLater) {
  absl::StatusOr<net::Wire> dialed;
  GroupInfo rank1 = Group(1);
  rank1.id = 7;
  {
    const Fd early = Knock(address());
    Say(early, MakeDialerHandshake(Purpose::kTensors, rank1, 0)->Start());
    AwaitHangUp(early);
  }
  std::thread peer([&] { dialed = Dial(address(), rank1); });
  GroupInfo set = Group(0);
  set.id = 7;
  const std::shared_ptr<PeerInbox> inbox = Enter(set);
  const net::Wire taken = Take(*inbox);
  peer.join();
  ASSERT_TRUE(dialed.ok()) << dialed.status();
  ExpectConnected(*dialed, taken);
}

TEST_F(PeerPortTest, GroupsDoNotMix) {
  GroupInfo set = Group(0, "secret of the set"), member = Group(1, "secret of the set");
  set.id = member.id = 7;
  const std::shared_ptr<PeerInbox> inbox = Enter(set);
  const auto in_set = Dial(address(), member);
  ExpectRank1GetsIn();
  ExpectConnected(*in_set, Take(*inbox));
  member.secret = "secret";
  EXPECT_EQ(Dial(address(), member).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(PeerPortTest, EnterTwice_SharesTheInbox) { EXPECT_EQ(Enter(Group(0)), inbox_); }

TEST_F(PeerPortTest, AGroupThatHasLeftClosesItsConnections) {
  GroupInfo set = Group(0), member = Group(1);
  set.id = member.id = 7;
  std::shared_ptr<PeerInbox> inbox = Enter(set);
  const auto dialed = Dial(address(), member);
  ASSERT_TRUE(dialed.ok()) << dialed.status();
  inbox.reset();
  AwaitHangUp(*dialed);
  ExpectRank1GetsIn();
}

TEST_F(PeerPortTest, WrongSecret_DialerGetsPermissionDenied) {
  const auto dialed = Dial(address(), Group(1, "guess"));
  EXPECT_EQ(dialed.status().code(), absl::StatusCode::kPermissionDenied) << dialed.status();
  EXPECT_TRUE(Mentions(dialed.status(), "rank 0 does not know")) << dialed.status();
}

TEST_F(PeerPortTest, PeerOfOtherEpoch_IsRefused) {
  GroupInfo rank1 = Group(1);
  rank1.epoch = Epoch(6);
  const Fd peer = Knock(address());
  Say(peer, MakeDialerHandshake(Purpose::kTensors, rank1, 0)->Start());
  AwaitHangUp(peer);
  ExpectRank1GetsIn();
}

TEST(PeerPortOpenTest, NotANumericAddress_IsRefused) {
  EXPECT_EQ(PeerPort::Open("localhost").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::collectives::peer
