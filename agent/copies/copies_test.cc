#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "agent/copies/channel.h"
#include "agent/copies/commit_keeper.h"
#include "agent/copies/commit_source.h"
#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/peer/peer_opening.h"
#include "base/net/strangers_test_util.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"
#include "worker_runtime/commit_store/arena_view.h"
#include "worker_runtime/commit_store/commit_arena.h"

namespace hvd::agent::copies {
namespace {

using rendezvous::security::JobAuthority;
using worker_runtime::commit_store::ArenaView;
using worker_runtime::commit_store::CommitArena;

constexpr size_t kNoBound = size_t{1} << 40;

Trust TrustOf(JobAuthority& authority, std::string token = "") {
  const rendezvous::security::PeerCredentials own = authority.IssueForHost("host").value();
  const auto tls = net::TlsContext::Create({own.ca_certificate, own.certificate, own.private_key});
  return {*tls, token.empty() ? own.token : std::move(token)};
}

// A host with a worker whose agent serves copies.
class CopiesTest : public testing::Test {
 protected:
  CopiesTest() {
    source_ = CommitSource::Open("127.0.0.1", TrustOf(*authority_), kNoBound).value();
    EXPECT_TRUE(source_->Begin("job").ok());
    source_->Offer(memory_.get());
  }
  void Commit(uint64_t number, absl::string_view contents) {
    EXPECT_TRUE(worker_->Begin(contents.size()).ok());
    EXPECT_TRUE(worker_->Append(contents).ok());
    EXPECT_TRUE(worker_->Seal(number).ok());
  }
  void Follow(CommitKeeper& keeper) {
    keeper.Follow(source_->address(), [this](const absl::StatusOr<uint64_t>& kept) {
      absl::MutexLock lock(&mutex_);
      if (kept.ok()) {
        kept_ = *kept;
      } else {
        ++failures_;
      }
    });
  }
  void AwaitKept(uint64_t number) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return kept_ == number; };
    mutex_.Await(absl::Condition(&there));
  }
  void AwaitFailures(int failures) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return failures_ == failures; };
    mutex_.Await(absl::Condition(&there));
  }
  // The commit that a worker reads from this agent's copies.
  static std::string TakenFrom(const CommitKeeper& keeper, absl::string_view job = "job") {
    const Fd memory(memfd_create("later", MFD_CLOEXEC));
    const auto later = CommitArena::Open(Fd(dup(memory.get())), job).value();
    ArenaView kept(Fd(dup(keeper.memory())), job);
    const absl::Status taken = later->TakeOver(kept);
    if (!taken.ok()) return absl::StrCat(absl::StatusCodeToString(taken.code()));
    return absl::StrCat(later->Newest()->number, ":", later->Newest()->contents);
  }

  std::unique_ptr<JobAuthority> authority_ = JobAuthority::Create("job").value();
  const Fd memory_{memfd_create("commits", MFD_CLOEXEC)};
  std::unique_ptr<CommitArena> worker_ = CommitArena::Open(Fd(dup(memory_.get())), "job").value();
  std::unique_ptr<CommitSource> source_;
  absl::Mutex mutex_;
  uint64_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(CopiesTest, Follow_EachCommit_ComesOver) {
  CommitKeeper keeper("job", TrustOf(*authority_));
  Follow(keeper);
  EXPECT_EQ(TakenFrom(keeper), "NOT_FOUND");
  Commit(3, "three");
  AwaitKept(3);
  EXPECT_EQ(TakenFrom(keeper), "3:three");
  const std::string large(5 << 20, 'x');
  Commit(4, large);
  AwaitKept(4);
  EXPECT_EQ(TakenFrom(keeper), "4:" + large);
  EXPECT_EQ(TakenFrom(keeper, "another job"), "NOT_FOUND");
}

TEST_F(CopiesTest, Follow_SourceEnds_CopyStaysAndTheNextSourceIsTaken) {
  CommitKeeper keeper("job", TrustOf(*authority_));
  Commit(3, "three");
  Follow(keeper);
  AwaitKept(3);
  source_ = CommitSource::Open("127.0.0.1", TrustOf(*authority_), kNoBound).value();
  ASSERT_TRUE(source_->Begin("job").ok());
  source_->Offer(memory_.get());
  Follow(keeper);
  EXPECT_EQ(TakenFrom(keeper), "3:three");
  Commit(4, "four");
  AwaitKept(4);
}

TEST_F(CopiesTest, Follow_SeveralWorkers_TheNewestCounts) {
  const Fd memory(memfd_create("commits", MFD_CLOEXEC));
  const auto other = CommitArena::Open(Fd(dup(memory.get())), "job").value();
  source_->Offer(memory.get());
  ASSERT_TRUE(other->Begin(3).ok() && other->Append("new").ok() && other->Seal(8).ok());
  Commit(7, "old");
  CommitKeeper keeper("job", TrustOf(*authority_));
  Follow(keeper);
  AwaitKept(8);
  EXPECT_EQ(TakenFrom(keeper), "8:new");
}

TEST_F(CopiesTest, Follow_SourceIsUnreachable_IsReportedAndTheCopyStays) {
  CommitKeeper keeper("job", TrustOf(*authority_), absl::Milliseconds(50));
  Commit(3, "three");
  Follow(keeper);
  AwaitKept(3);
  source_.reset();
  AwaitFailures(1);
  EXPECT_EQ(TakenFrom(keeper), "3:three");
}

TEST_F(CopiesTest, Drop_NothingIsLeft) {
  CommitKeeper keeper("job", TrustOf(*authority_));
  Commit(3, "three");
  Follow(keeper);
  AwaitKept(3);
  keeper.Drop();
  EXPECT_EQ(TakenFrom(keeper), "NOT_FOUND");
  Follow(keeper);  // from the beginning
  Commit(4, "four");
  AwaitKept(4);
  EXPECT_EQ(TakenFrom(keeper), "4:four");
}

// An unauthenticated peer only sees the end of the connection.
class StrangerTest : public CopiesTest {
 protected:
  // One try, unlike net::peer::Dial.
  absl::StatusOr<net::Wire> Dial(const Trust& trust) {
    const absl::Time deadline = Clock::Real().Now() + Channel::kPatience;
    ASSIGN_OR_RETURN(const net::SocketAddress at, net::ParseSocketAddress(source_->address()));
    ASSIGN_OR_RETURN(Fd fd, net::Connect(at, deadline, nullptr));
    net::peer::PeerOpening opening(
        net::Wire(std::move(fd), trust.tls, net::TlsEnd::kConnects), [&](std::string binding) {
          return MakeTokenHandshake(trust, net::TlsEnd::kConnects, std::move(binding));
        });
    while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
      RETURN_IF_ERROR(net::AwaitReady(opening.fd(), POLLIN, deadline));
    }
    if (!opening.status().ok()) return opening.status();
    return opening.TakeWire();
  }
  absl::Status Meet(const Trust& trust) { return Dial(trust).status(); }
  Cancellation never_;
};

TEST_F(StrangerTest, WithoutTheToken_IsSentAway) {
  EXPECT_TRUE(absl::IsUnavailable(Meet(TrustOf(*authority_, "wrong"))));
  EXPECT_TRUE(Meet(TrustOf(*authority_)).ok());
}

TEST_F(StrangerTest, OtherAuthority_IsRefused) {
  const auto other = JobAuthority::Create("job").value();
  const Trust own = TrustOf(*authority_);
  EXPECT_TRUE(absl::IsPermissionDenied(Meet(TrustOf(*other, own.token))));
}

// Its host is gone, which no packet tells.
TEST_F(StrangerTest, KeeperThatFallsSilent_DoesNotHoldUpTheNextOne) {
  const Trust trust = TrustOf(*authority_);
  auto connection = Dial(trust);
  ASSERT_TRUE(connection.ok()) << connection.status();
  Channel silent(*std::move(connection), never_);
  ASSERT_TRUE(silent.Send(EncodeNumber(0)).ok());
  Commit(3, "three");
  std::string copy(CopyHead::kBytes + 5, '\0');
  ASSERT_TRUE(silent.Receive(copy.data(), copy.size()).ok());
  CommitKeeper keeper("job", TrustOf(*authority_));
  Follow(keeper);
  AwaitKept(3);
}

// The present keeper keeps its connection, however many connect and authenticate nothing.
TEST_F(StrangerTest, ManyThatSayNothing_DoNotHoldUpThePresentKeeper) {
  CommitKeeper keeper("job", TrustOf(*authority_));
  Follow(keeper);
  Commit(1, "one");
  AwaitKept(1);
  const net::HostPort at = net::SplitHostPort(source_->address());
  std::vector<Fd> silent;
  for (int i = 0; i < 8; ++i) {
    auto connection =
        net::ConnectTo(at.host, std::stoi(at.port), Clock::Real().Now() + Channel::kPatience);
    ASSERT_TRUE(connection.ok()) << connection.status();
    silent.push_back(*std::move(connection));
  }
  for (uint64_t number = 2; number < 100; ++number) {
    Commit(number, "next");
    AwaitKept(number);
  }
}

// Nor do they hold up a keeper that comes later, whether they are silent or have begun a TLS
// handshake.
TEST_F(StrangerTest, ManyThatAuthenticateNothing_HoldNobodyUp) {
  const net::HostPort at = net::SplitHostPort(source_->address());
  std::vector<Fd> strangers;
  for (int i = 0; i < 300; ++i) {
    auto stranger =
        net::ConnectTo(at.host, std::stoi(at.port), Clock::Real().Now() + Channel::kPatience);
    ASSERT_TRUE(stranger.ok()) << stranger.status();
    if (i % 2 == 0) {
      ASSERT_EQ(send(stranger->get(), "\x16", 1, MSG_NOSIGNAL), 1);
    }
    strangers.push_back(*std::move(stranger));
  }
  // Its own patience ends before those of so many strangers, one after another, would.
  ASSERT_EQ(Meet(TrustOf(*authority_)), absl::OkStatus());
  Commit(3, "three");
  CommitKeeper keeper("job", TrustOf(*authority_));
  Follow(keeper);
  AwaitKept(3);
}

// A keeper in the middle of a slow handshake keeps its place among ClientHellos from elsewhere.
TEST_F(StrangerTest, ClientHellosFromElsewhere_DoNotDisplaceASlowKeeper) {
  constexpr size_t kMostOfAStage = 128;
  const Trust trust = TrustOf(*authority_);
  net::Wire slow = net::BeginHandshake("127.0.0.1", source_->address(), trust.tls);
  const std::vector<Fd> crowd = net::CrowdOfClientHellos("127.0.0.2", source_->address(), trust.tls,
                                                         kMostOfAStage + 200, kMostOfAStage - 1);
  net::Opening step;
  while ((step = slow.Open()) == net::Opening::kWantsToRead) {
    ASSERT_TRUE(net::AwaitReady(slow.fd(), POLLIN, Clock::Real().Now() + absl::Minutes(1)).ok());
  }
  EXPECT_EQ(step, net::Opening::kDone);
  char byte = 0;
  EXPECT_TRUE(slow.Read(&byte, 1).would_block) << "hung up on";
}

}  // namespace
}  // namespace hvd::agent::copies
