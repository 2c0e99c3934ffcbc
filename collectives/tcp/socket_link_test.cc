#include "collectives/tcp/socket_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

using End = SocketLink::End;

// Two ends of one connection.
class SocketLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    near_ = MakeLink(fds[0]);
    far_ = MakeLink(fds[1]);
  }

  static std::unique_ptr<SocketLink> MakeLink(int fd) {
    return std::make_unique<SocketLink>(net::Wire(Fd(fd), nullptr, net::TlsEnd::kConnects));
  }

  // Moves messages until nothing moves.
  void Exchange() {
    while (near_->Advance() || far_->Advance()) {
    }
  }

  std::unique_ptr<SocketLink> near_, far_;
  size_t sent_ = 0, received_ = 0;
};

TEST_F(SocketLinkTest, Messages_OfAllSizes_ArriveInOrder) {
  const std::vector<size_t> sizes = {1, 0, 7, 8, 9, 70000, 0, 3 << 20, 1};
  std::vector<std::string> from, to;
  for (const size_t size : sizes) {
    from.emplace_back(size, static_cast<char>('a' + from.size()));
    to.emplace_back(size, '?');
  }
  for (size_t i = 0; i < sizes.size(); ++i) near_->Send(from[i].data(), sizes[i], &sent_);
  for (size_t i = 0; i < sizes.size(); ++i) far_->Receive(&to[i][0], sizes[i], &received_);
  Exchange();
  EXPECT_EQ(sent_, sizes.size());
  EXPECT_EQ(received_, sizes.size());
  EXPECT_TRUE(to == from);
  EXPECT_FALSE(near_->wants_to_write());
  EXPECT_FALSE(far_->wants_to_read());
}

TEST_F(SocketLinkTest, Message_WithoutMemory_StaysInTheKernel) {
  const std::string text = "text";
  near_->Send(text.data(), text.size(), &sent_);
  Exchange();
  EXPECT_EQ(sent_, 1u);
  std::string memory(4, '?');
  far_->Receive(&memory[0], 4, &received_);
  EXPECT_EQ(received_, 0u) << "nothing is read before it is asked for";
  Exchange();
  EXPECT_EQ(received_, 1u);
  EXPECT_EQ(memory, text);
}

TEST_F(SocketLinkTest, Goodbye_AfterMessages_LosesNone) {
  const std::string small = "small", large(100000, 'l');
  near_->Send(small.data(), small.size(), &sent_);
  near_->Send("", 0, &sent_);
  near_->Send(large.data(), large.size(), &sent_);
  near_->SayGoodbye();
  near_.reset();
  far_->ReadToEnd();
  EXPECT_EQ(far_->end(), End::kGoodbye);
  EXPECT_FALSE(far_->is_stuck());
  std::string first(5, '?'), third(100000, '?');
  far_->Receive(&first[0], 5, &received_);
  far_->Receive(nullptr, 0, &received_);
  far_->Receive(&third[0], third.size(), &received_);
  EXPECT_EQ(received_, 3u);
  EXPECT_EQ(first, small);
  EXPECT_EQ(third, large);
  char one_more;
  far_->Receive(&one_more, 1, &received_);
  EXPECT_TRUE(far_->is_stuck());
}

TEST_F(SocketLinkTest, GaveUp_NamesTheCause) {
  near_->SayGaveUp(7);
  far_->ReadToEnd();
  EXPECT_EQ(far_->end(), End::kGaveUp);
  EXPECT_EQ(far_->cause(), 7);
}

TEST_F(SocketLinkTest, GaveUp_CauseThatFitsInNoInt_StaysLarge) {
  const int64_t cause = int64_t{1} << 32;
  const int64_t word = -2 - cause;
  ASSERT_EQ(send(near_->fd(), &word, sizeof(word), MSG_NOSIGNAL), 8);
  near_.reset();
  far_->ReadToEnd();
  EXPECT_EQ(far_->end(), End::kGaveUp);
  EXPECT_EQ(far_->cause(), std::numeric_limits<int>::max()) << "and not 0";
}

TEST_F(SocketLinkTest, GaveUp_InTheMiddleOfAMessage_IsALoss) {
  const std::string large(8 << 20, 'l');
  near_->Send(large.data(), large.size(), &sent_);
  EXPECT_TRUE(near_->wants_to_write()) << "larger than the socket's buffer";
  near_->Abandon();
  near_->SayGaveUp(7);
  far_->ReadToEnd();
  EXPECT_EQ(far_->end(), End::kLost) << "its number would be taken for a part of the message";
}

TEST_F(SocketLinkTest, PeerThatCloses_IsALossForWriters) {
  far_.reset();
  const std::string text = "text";
  near_->Send(text.data(), text.size(), &sent_);
  EXPECT_EQ(near_->end(), End::kLost);
  EXPECT_TRUE(near_->is_stuck());
}

// The write fails first, but the reason has arrived before.
TEST_F(SocketLinkTest, WriteToAPeerThatGaveUp_FindsItsLastMessage) {
  far_->SayGaveUp(3);
  far_.reset();
  const std::string text = "text";
  near_->Send(text.data(), text.size(), &sent_);
  EXPECT_EQ(near_->end(), End::kGaveUp);
  EXPECT_EQ(near_->cause(), 3);
}

TEST_F(SocketLinkTest, Message_OfAnotherLength_EndsTheStream) {
  for (const size_t expected : {3u, 5u, 0u}) {
    SetUp();
    const std::string text = "text";
    std::string memory(5, '?');
    near_->Send(text.data(), text.size(), &sent_);
    far_->Receive(&memory[0], expected, &received_);
    Exchange();
    EXPECT_EQ(far_->end(), End::kMalformed) << expected;
    EXPECT_EQ(received_, 0u);
  }
}

TEST_F(SocketLinkTest, KeptMessage_OfAnotherLength_EndsTheStream) {
  const std::string text = "text";
  near_->Send(text.data(), text.size(), &sent_);
  near_->SayGoodbye();
  far_->ReadToEnd();
  std::string memory(5, '?');
  far_->Receive(&memory[0], memory.size(), &received_);
  EXPECT_EQ(far_->end(), End::kMalformed);
  EXPECT_EQ(received_, 0u);
}

// A length alone reserves no memory.
TEST_F(SocketLinkTest, HugeLengthWithoutItsBytes_IsALoss) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  far_ = MakeLink(fds[1]);
  const int64_t length = int64_t{1} << 62;
  ASSERT_EQ(write(fds[0], &length, sizeof(length)), static_cast<ssize_t>(sizeof(length)));
  close(fds[0]);
  far_->ReadToEnd();
  EXPECT_EQ(far_->end(), End::kLost);
}

}  // namespace
}  // namespace hvd::collectives::tcp
