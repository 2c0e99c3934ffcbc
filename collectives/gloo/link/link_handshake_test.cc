#include "collectives/gloo/link/link_handshake.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "collectives/gloo/link/link_opening.h"
#include "gtest/gtest.h"

namespace hvd::collectives::gloo::link {
namespace {

GroupInfo Group(int rank, const std::string& secret = "secret", uint64_t epoch = 5, int size = 3) {
  return {Epoch(epoch), rank, size, "", secret};
}

// What both say to each other until one has had enough.
struct Talk {
  absl::Status dialer, acceptor;
  bool whole = false;  // nobody wants more
};

Talk Hold(LinkHandshake& dialer, LinkHandshake& acceptor) {
  Talk talk;
  std::string to_acceptor = dialer.Start(), to_dialer = acceptor.Start();
  while (talk.dialer.ok() && talk.acceptor.ok() && !talk.whole) {
    if (acceptor.wanted() > 0 && to_acceptor.size() == acceptor.wanted()) {
      const auto answer = acceptor.Step(std::exchange(to_acceptor, ""));
      talk.acceptor = answer.status();
      if (answer.ok()) to_dialer = *answer;
    } else if (dialer.wanted() > 0 && to_dialer.size() == dialer.wanted()) {
      const auto answer = dialer.Step(std::exchange(to_dialer, ""));
      talk.dialer = answer.status();
      if (answer.ok()) to_acceptor = *answer;
    } else {
      break;
    }
    talk.whole = dialer.wanted() == 0 && acceptor.wanted() == 0;
  }
  return talk;
}

Talk HoldBetween(const GroupInfo& dialer, int to, const GroupInfo& acceptor,
                 const std::string& dialers_binding = "", const std::string& acceptors = "") {
  const auto one = MakeDialerHandshake(dialer, to, dialers_binding);
  const auto other = MakeAcceptorHandshake(acceptor, acceptors);
  return Hold(*one, *other);
}

TEST(LinkHandshakeTest, BothEndsLearnThatTheyBelongTogether) {
  const GroupInfo two = Group(2), one = Group(1);
  const auto dialer = MakeDialerHandshake(two, 1);
  const auto acceptor = MakeAcceptorHandshake(one);
  EXPECT_EQ(acceptor->peer(), -1);
  EXPECT_TRUE(Hold(*dialer, *acceptor).whole);
  EXPECT_EQ(acceptor->peer(), 2);
  EXPECT_EQ(dialer->peer(), 1);
}

TEST(LinkHandshakeTest, ADialerSeesThatTheOtherEndDoesNotKnowTheSecret) {
  const Talk talk = HoldBetween(Group(2), 1, Group(1, "guess"));
  EXPECT_EQ(talk.dialer.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(talk.dialer.message().find("rank 1 does not know"), absl::string_view::npos);
}

TEST(LinkHandshakeTest, AnAcceptorSeesThatTheOtherEndDoesNotKnowTheSecret) {
  const GroupInfo one = Group(1), stranger = Group(2);
  const auto acceptor = MakeAcceptorHandshake(one);
  ASSERT_TRUE(acceptor->Step(MakeDialerHandshake(stranger, 1)->Start()).ok());
  EXPECT_EQ(acceptor->Step(std::string(acceptor->wanted(), 'x')).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(LinkHandshakeTest, WhoIsOfAnotherGroupIsRefusedAtTheFirstWord) {
  const GroupInfo strangers[] = {Group(2, "secret", 6), Group(2, "secret", 5, 4),
                                 Group(1, "secret"), Group(7, "secret", 5, 3)};
  for (const GroupInfo& stranger : strangers) {
    EXPECT_EQ(HoldBetween(stranger, 1, Group(1)).acceptor.code(),
              absl::StatusCode::kPermissionDenied)
        << stranger.rank << " of " << stranger.size;
  }
  EXPECT_EQ(HoldBetween(Group(2), 0, Group(1)).acceptor.code(), absl::StatusCode::kPermissionDenied)
      << "meant for another";
}

TEST(LinkHandshakeTest, BothEndsMustSeeTheSameChannel) {
  EXPECT_TRUE(HoldBetween(Group(2), 1, Group(1), "channel", "channel").whole);
  EXPECT_FALSE(HoldBetween(Group(2), 1, Group(1), "channel", "another").whole);
}

// What an acceptor says first is not what it wants to hear, and an old proof is worth nothing.
TEST(LinkHandshakeTest, NothingCanBeSentBackOrPlayedAgain) {
  const GroupInfo one = Group(1), two = Group(2);
  const auto dialer = MakeDialerHandshake(two, 1);
  const std::string hello = dialer->Start();
  const auto first = MakeAcceptorHandshake(one);
  const auto challenge = first->Step(hello);
  ASSERT_TRUE(challenge.ok());
  const auto proof = dialer->Step(*challenge);
  ASSERT_TRUE(proof.ok());
  const auto second = MakeAcceptorHandshake(one);
  const auto fresh = second->Step(hello);
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(second->Step(*proof).ok()) << "played again";
  const auto third = MakeAcceptorHandshake(one);
  const auto mirrored = third->Step(hello);
  ASSERT_TRUE(mirrored.ok());
  EXPECT_FALSE(third->Step(mirrored->substr(mirrored->size() - third->wanted())).ok())
      << "sent back";
}

net::Wire Plain(int fd) { return net::Wire(Fd(fd), nullptr, net::TlsEnd::kAccepts); }

// However the bytes are cut, and not one byte too many is read.
TEST(LinkOpeningTest, TakesWhatComesInPieces) {
  const GroupInfo one = Group(1), two = Group(2);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  LinkOpening acceptor(Plain(ends[0]), [&](std::string binding) {
    return MakeAcceptorHandshake(one, std::move(binding));
  });
  const Fd other(ends[1]);
  const auto dialer = MakeDialerHandshake(two, 1);
  std::string next = dialer->Start();
  EXPECT_EQ(acceptor.Advance(), LinkOpening::Progress::kWantsToRead);
  EXPECT_FALSE(acceptor.heard());
  for (int part = 0; part < 2; ++part) {
    if (part == 1) next += "data";
    for (size_t i = 0; i < next.size(); ++i) {
      ASSERT_EQ(send(other.get(), &next[i], 1, 0), 1);
      const bool last = part == 1 && i + 5 >= next.size();
      ASSERT_EQ(acceptor.Advance(),
                last ? LinkOpening::Progress::kProved : LinkOpening::Progress::kWantsToRead);
    }
    if (part == 1) break;
    std::string answer(dialer->wanted(), '\0');
    ASSERT_EQ(recv(other.get(), &answer[0], answer.size(), 0), static_cast<ssize_t>(answer.size()));
    next = *dialer->Step(answer);
  }
  EXPECT_EQ(acceptor.peer(), 2);
  const net::Wire wire = acceptor.TakeWire();
  char data[8];
  EXPECT_EQ(recv(wire.fd(), data, sizeof(data), 0), 4);
}

TEST(LinkOpeningTest, SilentLinksAreKeptAlive) {
  const GroupInfo one = Group(1);
  const LinkOpening opening(
      Plain(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)),
      [&](std::string binding) { return MakeAcceptorHandshake(one, std::move(binding)); });
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t length = sizeof(value);
    EXPECT_EQ(getsockopt(opening.fd(), level, name, &value, &length), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPIDLE), 60) << "as long as the shortest memory of a NAT";
}

TEST(LinkOpeningTest, AnEndOfTheStreamIsUnavailable) {
  const GroupInfo one = Group(1);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  LinkOpening acceptor(Plain(ends[0]), [&](std::string binding) {
    return MakeAcceptorHandshake(one, std::move(binding));
  });
  Fd(ends[1]).reset();
  EXPECT_EQ(acceptor.Advance(), LinkOpening::Progress::kFailed);
  EXPECT_EQ(acceptor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(acceptor.Advance(), LinkOpening::Progress::kFailed);
}

}  // namespace
}  // namespace hvd::collectives::gloo::link
