#include "collectives/peer_handshake.h"

#include <utility>

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

constexpr absl::string_view kProtocol = "hvd-test";

GroupInfo Group(int rank, const std::string& secret = "secret", uint64_t epoch = 5, int size = 3) {
  return {Epoch(epoch), rank, size, "", secret};
}

// The messages of both ends until one of them refuses the other or both are done.
struct Talk {
  absl::Status dialer, acceptor;
  bool whole = false;  // both ends are done
};

Talk Hold(net::peer::Handshake& dialer, net::peer::Handshake& acceptor) {
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
  const auto one = MakeDialerHandshake(kProtocol, dialer, to, dialers_binding);
  const auto other = MakeAcceptorHandshake(kProtocol, acceptor, acceptors);
  return Hold(*one, *other);
}

TEST(PeerHandshakeTest, BothEndsLearnThatTheyBelongTogether) {
  const GroupInfo two = Group(2), one = Group(1);
  const auto dialer = MakeDialerHandshake(kProtocol, two, 1);
  const auto acceptor = MakeAcceptorHandshake(kProtocol, one);
  EXPECT_EQ(acceptor->peer(), -1);
  EXPECT_TRUE(Hold(*dialer, *acceptor).whole);
  EXPECT_EQ(acceptor->peer(), 2);
  EXPECT_EQ(dialer->peer(), 1);
}

TEST(PeerHandshakeTest, ADialerSeesThatTheOtherEndDoesNotKnowTheSecret) {
  const Talk talk = HoldBetween(Group(2), 1, Group(1, "guess"));
  EXPECT_EQ(talk.dialer.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(talk.dialer.message().find("rank 1 does not know"), absl::string_view::npos);
}

TEST(PeerHandshakeTest, AnAcceptorSeesThatTheOtherEndDoesNotKnowTheSecret) {
  const GroupInfo one = Group(1), stranger = Group(2);
  const auto acceptor = MakeAcceptorHandshake(kProtocol, one);
  ASSERT_TRUE(acceptor->Step(MakeDialerHandshake(kProtocol, stranger, 1)->Start()).ok());
  EXPECT_EQ(acceptor->Step(std::string(acceptor->wanted(), 'x')).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(PeerHandshakeTest, WhoIsOfAnotherGroupIsRefusedAtTheFirstWord) {
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

TEST(PeerHandshakeTest, BothEndsMustSeeTheSameChannel) {
  EXPECT_TRUE(HoldBetween(Group(2), 1, Group(1), "channel", "channel").whole);
  EXPECT_FALSE(HoldBetween(Group(2), 1, Group(1), "channel", "another").whole);
}

TEST(PeerHandshakeTest, WhoSpeaksAnotherProtocolIsRefusedAtTheFirstWord) {
  const GroupInfo one = Group(1), two = Group(2);
  const auto dialer = MakeDialerHandshake("hvd-else", two, 1);
  const auto acceptor = MakeAcceptorHandshake(kProtocol, one);
  EXPECT_EQ(Hold(*dialer, *acceptor).acceptor.code(), absl::StatusCode::kPermissionDenied);
}

TEST(PeerHandshakeTest, HelloNeverRepeats) {
  const GroupInfo two = Group(2);
  EXPECT_NE(MakeDialerHandshake(kProtocol, two, 1)->Start(),
            MakeDialerHandshake(kProtocol, two, 1)->Start());
}

// An acceptor accepts neither its own message (reflection) nor an old proof (replay).
TEST(PeerHandshakeTest, NothingCanBeSentBackOrPlayedAgain) {
  const GroupInfo one = Group(1), two = Group(2);
  const auto dialer = MakeDialerHandshake(kProtocol, two, 1);
  const std::string hello = dialer->Start();
  const auto first = MakeAcceptorHandshake(kProtocol, one);
  const auto challenge = first->Step(hello);
  ASSERT_TRUE(challenge.ok());
  const auto proof = dialer->Step(*challenge);
  ASSERT_TRUE(proof.ok());
  const auto second = MakeAcceptorHandshake(kProtocol, one);
  const auto fresh = second->Step(hello);
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(second->Step(*proof).ok()) << "played again";
  const auto third = MakeAcceptorHandshake(kProtocol, one);
  const auto mirrored = third->Step(hello);
  ASSERT_TRUE(mirrored.ok());
  EXPECT_FALSE(third->Step(mirrored->substr(mirrored->size() - third->wanted())).ok())
      << "sent back";
}

}  // namespace
}  // namespace hvd::collectives
