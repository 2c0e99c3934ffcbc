#include "collectives/tcp/peer_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/standing_clock_test_util.h"
#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

using End = SocketLink::End;

constexpr size_t kLargeBytes = 1000;
constexpr size_t kConnections = 3;

net::Wire MakeWire(int fd) { return net::Wire(Fd(fd), nullptr, net::TlsEnd::kConnects); }

// Two ends of a link of several connections.
class PeerLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<net::Wire> near, far;
    for (size_t i = 0; i < kConnections; ++i) {
      int fds[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
      near.push_back(MakeWire(fds[0]));
      far.push_back(MakeWire(fds[1]));
    }
    near_ = MakeLink(std::move(near));
    far_ = MakeLink(std::move(far));
  }

  std::unique_ptr<PeerLink> MakeLink(std::vector<net::Wire> wires) {
    auto link = std::make_unique<PeerLink>(std::move(wires.front()), kLargeBytes, clock_);
    wires.erase(wires.begin());
    link->AddConnections(std::move(wires));
    link->SplitLarge(true);
    return link;
  }

  // Moves messages until nothing moves.
  void Exchange() {
    while (near_->Advance() || far_->Advance()) {
    }
  }

  // What the far end's connection `number` holds, without taking it out.
  size_t BytesAt(size_t number) {
    std::string bytes(1 << 20, '?');
    const ssize_t got = recv(far_->fds()[number], &bytes[0], bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }

  StandingClock clock_{absl::UnixEpoch()};
  std::unique_ptr<PeerLink> near_, far_;
  size_t sent_ = 0, received_ = 0;
};

TEST_F(PeerLinkTest, MessagesOfAllSizes_ArriveInOrder) {
  const std::vector<size_t> sizes = {1, 999, 1000, 0, 1001, 70000, 3 << 20, 5, 1 << 20, 0};
  std::vector<std::string> from, to;
  for (const size_t size : sizes) {
    from.emplace_back();
    for (size_t i = 0; i < size; ++i) from.back().push_back(static_cast<char>(i * 7 + i / 251));
    to.emplace_back(size, '?');
  }
  for (size_t i = 0; i < sizes.size(); ++i) near_->Send(from[i].data(), sizes[i], &sent_);
  for (size_t i = 0; i < sizes.size(); ++i) far_->Receive(&to[i][0], sizes[i], &received_);
  Exchange();
  EXPECT_EQ(sent_, sizes.size());
  EXPECT_EQ(received_, sizes.size());
  EXPECT_TRUE(to == from);
  EXPECT_FALSE(near_->wants_to_move());
  EXPECT_FALSE(far_->wants_to_move());
}

TEST_F(PeerLinkTest, OnlyLargeMessagesAreSplit_AndOnlyIfSo) {
  const std::string small(kLargeBytes - 1, 's'), large(3 * kLargeBytes, 'l');
  near_->Send(small.data(), small.size(), &sent_);
  EXPECT_EQ(BytesAt(1) + BytesAt(2), 0u);
  near_->Send(large.data(), large.size(), &sent_);
  EXPECT_GT(BytesAt(1), kLargeBytes / 2);
  EXPECT_GT(BytesAt(2), kLargeBytes / 2);
  const size_t before = BytesAt(1);
  near_->SplitLarge(false);
  near_->Send(large.data(), large.size(), &sent_);
  EXPECT_EQ(BytesAt(1), before);
  EXPECT_EQ(sent_, 3u);
}

// The small message arrives first: it uses a connection of its own speed.
TEST_F(PeerLinkTest, MessageBehindASlowerOne_IsCountedAfterIt) {
  const std::string large(3 * kLargeBytes, 'l'), small = "s";
  near_->Send(large.data(), large.size(), &sent_);
  near_->Send(small.data(), small.size(), &sent_);
  std::string slow(large.size(), '?'), fast(1, '?');
  size_t slow_received = 0, fast_received = 0;
  far_->Receive(&slow[0], slow.size(), &slow_received);
  far_->Receive(&fast[0], 1, &fast_received);
  // Holds up the last part: what has arrived of it is taken away, and put back later.
  std::string held(large.size(), '?');
  const ssize_t taken = recv(far_->fds()[2], &held[0], held.size(), MSG_DONTWAIT);
  ASSERT_GT(taken, 0);
  Exchange();
  EXPECT_EQ(fast, "s") << "it has arrived";
  EXPECT_EQ(fast_received, 0u);
  EXPECT_EQ(slow_received, 0u);
  ASSERT_EQ(send(near_->fds()[2], held.data(), static_cast<size_t>(taken), MSG_NOSIGNAL), taken);
  Exchange();
  EXPECT_EQ(slow_received, 1u);
  EXPECT_EQ(fast_received, 1u);
  EXPECT_EQ(slow, large);
}

TEST_F(PeerLinkTest, TheEndOfOneConnection_IsTheEndOfTheLink) {
  shutdown(near_->fds()[1], SHUT_RDWR);
  far_->ReadHangUps();
  EXPECT_EQ(far_->end(), End::kLost);
  near_->SayGaveUp(1);  // over the others, because of the lost one
  far_->ReadHangUps();
  EXPECT_EQ(far_->end(), End::kGaveUp);
  EXPECT_EQ(far_->cause(), 1);
  EXPECT_TRUE(far_->HasLost());
}

// A network may drop connections that nothing is sent on.
TEST_F(PeerLinkTest, UnusedConnectionEnds_LinkStays) {
  far_->SplitLarge(false);
  EXPECT_TRUE(far_->IsWhole());
  shutdown(near_->fds()[1], SHUT_RDWR);
  far_->ReadHangUps();
  EXPECT_EQ(far_->end(), End::kOpen);
  EXPECT_FALSE(far_->HasLost());
  EXPECT_FALSE(far_->IsWhole());
  shutdown(near_->fds()[0], SHUT_RDWR);
  far_->ReadHangUps();
  EXPECT_EQ(far_->end(), End::kLost);
}

TEST_F(PeerLinkTest, ALastMessageOnOneConnection_ExplainsTheLossOfAnother) {
  near_->SayGaveUp(7);
  shutdown(far_->fds()[0], SHUT_RD);  // its last message is lost
  far_->ReadHangUps();
  EXPECT_EQ(far_->end(), End::kGaveUp);
  EXPECT_EQ(far_->cause(), 7);
}

TEST_F(PeerLinkTest, ALastMessageOnAConnectionThatIsNotUsed_ExplainsTheLossOfTheFirst) {
  far_->SplitLarge(false);
  near_->SayGaveUp(7);
  shutdown(far_->fds()[0], SHUT_RD);
  far_->ReadHangUps();
  EXPECT_EQ(far_->end(), End::kGaveUp);
  EXPECT_EQ(far_->cause(), 7);
}

TEST_F(PeerLinkTest, WhatCameBeforeAHangUp_IsKeptForLater) {
  const std::string large(3 * kLargeBytes, 'l');
  near_->Send(large.data(), large.size(), &sent_);
  near_->SayGoodbye();
  far_->ReadHangUps();
  EXPECT_EQ(far_->end(), End::kGoodbye);
  EXPECT_FALSE(far_->is_stuck());
  std::string memory(large.size(), '?');
  far_->Receive(&memory[0], memory.size(), &received_);
  EXPECT_EQ(received_, 1u);
  EXPECT_EQ(memory, large);
  far_->Receive(&memory[0], memory.size(), &received_);
  EXPECT_TRUE(far_->is_stuck()) << "nothing more will come";
}

TEST_F(PeerLinkTest, Abandon_ForgetsParts) {
  std::string memory(3 * kLargeBytes, '?');
  far_->Receive(&memory[0], memory.size(), &received_);
  far_->Abandon();
  EXPECT_FALSE(far_->wants_to_move());
  EXPECT_EQ(received_, 0u);
}

TEST_F(PeerLinkTest, Pace_CountsLargeAndBlockedMessages) {
  std::string text(8 << 20, 't'), memory(text.size(), '?');
  near_->Send(text.data(), 1, &sent_);
  near_->Send(text.data(), kLargeBytes, &sent_);
  SendPace pace = near_->TakePace();
  EXPECT_EQ(pace.bytes, kLargeBytes);
  EXPECT_EQ(pace.held_up_bytes, 0u);
  EXPECT_FALSE(pace.is_held_up());
  far_->Receive(&memory[0], 1, &received_);
  far_->Receive(&memory[0], kLargeBytes, &received_);
  near_->Send(text.data(), text.size(), &sent_);
  far_->Receive(&memory[0], memory.size(), &received_);
  Exchange();
  pace = near_->TakePace();
  EXPECT_EQ(pace.bytes, text.size());
  EXPECT_EQ(pace.held_up_bytes, text.size());
  EXPECT_TRUE(pace.is_held_up());
  EXPECT_EQ(near_->TakePace().bytes, 0u);
  EXPECT_EQ(near_->large_bytes_started(), kLargeBytes + text.size());
  EXPECT_EQ(far_->large_bytes_started(), kLargeBytes + text.size());
}

TEST_F(PeerLinkTest, Pace_IsOfTheTimeInWhichMessagesMove) {
  std::string text(kLargeBytes, 't'), memory(text.size(), '?');
  far_->Receive(&memory[0], memory.size(), &received_);
  clock_.Advance(absl::Milliseconds(3));
  near_->Send(text.data(), text.size(), &sent_);
  Exchange();
  clock_.Advance(absl::Milliseconds(5));  // between two messages
  EXPECT_EQ(far_->TakePace().moving_nanoseconds, 3'000'000u);

  // The peer comes late to its operation.
  far_->Receive(&memory[0], memory.size(), &received_);
  clock_.Advance(absl::Seconds(1));
  near_->Send(text.data(), text.size(), &sent_);
  Exchange();
  EXPECT_EQ(far_->TakePace().moving_nanoseconds, 10'000'000u);
}

}  // namespace
}  // namespace hvd::collectives::tcp
