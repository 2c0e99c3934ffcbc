#include "worker_runtime/control/control_connect.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/peer/peer_opening.h"
#include "base/net/strangers_test_util.h"
#include "base/net/tcp_socket.h"
#include "collectives/peer/peer_handshake.h"
#include "collectives/peer/peer_port.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::worker_runtime::control {
namespace {

constexpr char kAddress[] = "127.0.0.1";
constexpr absl::Duration kLong = absl::Seconds(60);

absl::Time Soon() { return Clock::Real().Now() + kLong; }

// As many files as this process may have; as before at the end.
class FileLimit {
 public:
  FileLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  void Set(rlim_t most) {
    const rlimit limit{most, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  rlim_t highest() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

// A member that does one step of its handshake at a time.
class SlowMember {
 public:
  SlowMember(collectives::GroupInfo group, int port)
      : group_(std::move(group)), fd_(*net::ConnectTo(kAddress, port, Soon())) {}

  void SendName() { Send(handshake_->Start()); }
  void TakeChallenge() {
    const auto proof = handshake_->Step(Read());
    ASSERT_TRUE(proof.ok()) << proof.status();
    proof_ = *proof;
  }
  void Prove() { Send(proof_); }
  bool IsWelcome() {
    const std::string welcome = Read();
    return handshake_->Step(welcome).ok() && handshake_->wanted() == 0;
  }

 private:
  void Send(const std::string& bytes) {
    ASSERT_EQ(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // What the handshake wants, or less if rank 0 hangs up.
  std::string Read() {
    std::string bytes(handshake_->wanted(), '\0');
    size_t got = 0;
    while (got < bytes.size() && net::AwaitReady(fd_.get(), POLLIN, Soon()).ok()) {
      const ssize_t more = recv(fd_.get(), &bytes[got], bytes.size() - got, 0);
      if (more <= 0) break;
      got += static_cast<size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  }

  const collectives::GroupInfo group_;
  const Fd fd_;
  const std::unique_ptr<net::peer::Handshake> handshake_ =
      collectives::peer::MakeDialerHandshake(collectives::peer::Purpose::kControl, group_, 0);
  std::string proof_;
};

class ControlConnectTest : public testing::Test {
 protected:
  static collectives::GroupInfo Group(int rank, int size) {
    return {Epoch(1), rank, size, kAddress, "the secret"};
  }

  void StartRoot(int size) {
    root_ = std::thread([this, size] { accepted_ = AcceptMembers(AtPort(Group(0, size)), kLong); });
  }
  void ExpectAllCame() {
    root_.join();
    EXPECT_TRUE(accepted_->ok()) << accepted_->status();
  }

  collectives::GroupInfo AtPort(collectives::GroupInfo group) const {
    group.port = root_port_;
    return group;
  }
  // Takes the next connection in place of root_port_, which nobody has entered yet.
  Fd TakeOne() const {
    EXPECT_TRUE(net::AwaitReady(listener_.get(), POLLIN, Soon()).ok());
    return Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  const Fd listener_ = *net::ListenOnAnyPort(kAddress);
  const std::shared_ptr<collectives::peer::PeerPort> root_port_ =
      *collectives::peer::PeerPort::Adopt(Fd(dup(listener_.get())));
  const int port_ = root_port_->number();
  std::thread root_;
  std::optional<absl::StatusOr<std::vector<net::Wire>>> accepted_;
};

TEST_F(ControlConnectTest, ManyMembersAtTheSameStep_AllComeIn) {
  constexpr int kMembers = 600;
  FileLimit limit;
  limit.Set(limit.highest());
  StartRoot(1 + kMembers);
  std::vector<std::unique_ptr<SlowMember>> members;
  for (int rank = 1; rank <= kMembers; ++rank) {
    members.push_back(std::make_unique<SlowMember>(Group(rank, 1 + kMembers), port_));
    members.back()->SendName();
  }
  for (auto& member : members) member->TakeChallenge();
  for (auto& member : members) member->Prove();
  for (auto& member : members) EXPECT_TRUE(member->IsWelcome());
  ExpectAllCame();
}

TEST_F(ControlConnectTest, SilentStrangers_DoNotTakeAMembersRoom) {
  constexpr size_t kStrangers = 2000;
  FileLimit limit;
  limit.Set(limit.highest());
  SlowMember slow(Group(1, 3), port_);
  slow.SendName();
  StartRoot(3);
  slow.TakeChallenge();
  std::vector<Fd> strangers;
  while (strangers.size() < kStrangers)
    strangers.push_back(*net::ConnectTo(kAddress, port_, Soon()));
  // A member that connects after all strangers, and one that had connected before them.
  EXPECT_TRUE(ConnectToRoot(Group(2, 3), kAddress, port_, kLong).ok());
  slow.Prove();
  EXPECT_TRUE(slow.IsWelcome());
  ExpectAllCame();
}

TEST_F(ControlConnectTest, StrangersThatSendAName_DoNotBlockAMember) {
  constexpr size_t kStrangers = 1000;
  FileLimit limit;
  limit.Set(limit.highest());
  StartRoot(2);
  std::vector<std::unique_ptr<SlowMember>> strangers;
  while (strangers.size() < kStrangers) {
    collectives::GroupInfo stranger = Group(1, 2);
    stranger.secret = "another secret";
    strangers.push_back(std::make_unique<SlowMember>(std::move(stranger), port_));
    strangers.back()->SendName();
  }
  // At once, without waiting for the strangers' time to pass.
  SlowMember member(Group(1, 2), port_);
  member.SendName();
  member.TakeChallenge();
  member.Prove();
  EXPECT_TRUE(member.IsWelcome());
  ExpectAllCame();
}

// With TLS a member within its handshake has not named its rank yet. It keeps its place among
// ClientHellos from another address.
TEST_F(ControlConnectTest, ClientHellosFromElsewhere_DoNotDisplaceASlowMember) {
  constexpr size_t kMostOfAStage = 128 + 2;
  const auto authority = *rendezvous::security::JobAuthority::Create("job");
  const rendezvous::security::PeerCredentials own = *authority->IssueForHost("host");
  collectives::GroupInfo root = Group(0, 2), member = Group(1, 2);
  root.tls = member.tls =
      *net::TlsContext::Create({own.ca_certificate, own.certificate, own.private_key});
  root_ = std::thread([&] { accepted_ = AcceptMembers(AtPort(root), kLong); });
  const std::string to = absl::StrCat(kAddress, ":", port_);
  net::Wire slow = net::BeginHandshake("127.0.0.1", to, member.tls);
  const std::vector<Fd> crowd =
      net::CrowdOfClientHellos("127.0.0.2", to, member.tls, kMostOfAStage + 100, kMostOfAStage - 1);
  net::peer::PeerOpening opening(std::move(slow), [&](std::string binding) {
    return collectives::peer::MakeDialerHandshake(collectives::peer::Purpose::kControl, member, 0,
                                                  std::move(binding));
  });
  while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
    ASSERT_TRUE(net::AwaitReady(opening.fd(), POLLIN, Soon()).ok());
  }
  EXPECT_TRUE(opening.status().ok()) << opening.status();
  ExpectAllCame();
}

TEST_F(ControlConnectTest, Disconnected_Reconnects) {
  std::thread busy_root([this] {
    TakeOne().reset();
    StartRoot(2);
  });
  const auto member = ConnectToRoot(Group(1, 2), kAddress, port_, kLong);
  EXPECT_TRUE(member.ok()) << member.status();
  busy_root.join();
  ExpectAllCame();
}

TEST_F(ControlConnectTest, DisconnectedRepeatedly_GivesUpAtTheDeadline) {
  std::thread rude_root([this] {
    while (true) {
      const Fd fd = TakeOne();
      char last = 0;
      if (recv(fd.get(), &last, 1, MSG_WAITALL) == 1 && last == 'x') return;
    }
  });
  const auto member = ConnectToRoot(Group(1, 2), kAddress, port_, absl::Milliseconds(50));
  EXPECT_FALSE(member.ok());
  const Fd done = *net::ConnectTo(kAddress, port_, Soon());
  EXPECT_EQ(send(done.get(), "x", 1, MSG_NOSIGNAL), 1);
  rude_root.join();
}

// Leaves room for the files that AcceptMembers opens for itself (two of the event loop, two for
// news), and tells the last one's number.
int AllowOwnFiles(FileLimit& limit) {
  const int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0) + 3;
  close(last - 3);
  limit.Set(static_cast<rlim_t>(last) + 1);
  return last;
}

void AwaitOpened(int file) {
  while (fcntl(file, F_GETFD) < 0) std::this_thread::yield();
}

TEST_F(ControlConnectTest, NoFileLeft_WaitsWithoutTurningRoundAndRound) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan has files of its own, which the limit does not count";
#endif
  const Fd waiting = *net::ConnectTo(kAddress, port_, Soon());
  FileLimit limit;
  AllowOwnFiles(limit);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const auto root = AcceptMembers(AtPort(Group(0, 2)), absl::Milliseconds(500));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_TRUE(absl::IsDeadlineExceeded(root.status())) << root.status();
  // A turn waits or makes a few calls; a busy loop would make thousands.
  const auto busy = [](const rusage& usage) {
    return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
  };
  EXPECT_LT(busy(after) - busy(before), absl::Milliseconds(50));
}

TEST_F(ControlConnectTest, NoFileLeft_GoesOnWhenThereIsOne) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan has files of its own, which the limit does not count";
#endif
  FileLimit limit;
  {
    SlowMember member(Group(1, 2), port_);
    member.SendName();
    const int last = AllowOwnFiles(limit);
    StartRoot(2);
    AwaitOpened(last);
    limit.Set(limit.highest());
    member.TakeChallenge();
    member.Prove();
    EXPECT_TRUE(member.IsWelcome());
  }
  ExpectAllCame();
}

}  // namespace
}  // namespace hvd::worker_runtime::control
