#include "collectives/peer/peer_handshake.h"

#include <utility>

#include "gtest/gtest.h"

namespace hvd::collectives::peer {
namespace {

GroupInfo Group(int rank, const std::string& secret = "secret", uint64_t epoch = 5, int size = 3) {
  return {Epoch(epoch), rank, size, "", secret};
}

// The acceptor's end at a port where `group` alone is.
std::unique_ptr<net::peer::Handshake> AcceptorOf(const GroupInfo& group,
                                                 const std::string& binding = "") {
  return MakeAcceptorHandshake([own = std::make_shared<const GroupInfo>(group)](
                                   int id) { return id == own->id ? own : nullptr; },
                               binding);
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
  const auto one = MakeDialerHandshake(Purpose::kTensors, dialer, to, dialers_binding);
  const auto other = AcceptorOf(acceptor, acceptors);
  return Hold(*one, *other);
}

TEST(PeerHandshakeTest, BothEndsLearnThatTheyBelongTogether) {
  const GroupInfo two = Group(2), one = Group(1);
  const auto dialer = MakeDialerHandshake(Purpose::kTensors, two, 1);
  const auto acceptor = AcceptorOf(one);
  EXPECT_EQ(acceptor->peer().number, -1);
  EXPECT_TRUE(Hold(*dialer, *acceptor).whole);
  EXPECT_EQ(acceptor->peer().number, 2);
  EXPECT_EQ(dialer->peer().number, 1);
}

TEST(PeerHandshakeTest, ADialerSeesThatTheOtherEndDoesNotKnowTheSecret) {
  const Talk talk = HoldBetween(Group(2), 1, Group(1, "guess"));
  EXPECT_EQ(talk.dialer.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(talk.dialer.message().find("rank 1 does not know"), absl::string_view::npos);
}

TEST(PeerHandshakeTest, AnAcceptorSeesThatTheOtherEndDoesNotKnowTheSecret) {
  const GroupInfo one = Group(1), stranger = Group(2);
  const auto acceptor = AcceptorOf(one);
  ASSERT_TRUE(acceptor->Step(MakeDialerHandshake(Purpose::kTensors, stranger, 1)->Start()).ok());
  EXPECT_EQ(acceptor->Step(std::string(acceptor->wanted(), 'x')).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(PeerHandshakeTest, OtherGroup_IsRefusedAtTheFirstMessage) {
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

TEST(PeerHandshakeTest, TheAcceptorLearnsPurposeAndGroup) {
  GroupInfo two = Group(2), one = Group(1);
  two.id = one.id = 9;
  const auto dialer = MakeDialerHandshake(Purpose::kControl, two, 1);
  const auto acceptor = AcceptorOf(one);
  EXPECT_TRUE(Hold(*dialer, *acceptor).whole);
  EXPECT_EQ(acceptor->peer().purpose, static_cast<int>(Purpose::kControl));
  EXPECT_EQ(acceptor->peer().group, 9);
}

TEST(PeerHandshakeTest, UnknownGroupOrPurpose_IsRefusedAtTheFirstMessage) {
  const GroupInfo two = Group(2), one = Group(1);
  const std::string hello = MakeDialerHandshake(Purpose::kTensors, two, 1)->Start();
  for (const size_t at : {size_t{0}, size_t{11}}) {  // in the purpose, in the group
    std::string other = hello;
    other[at] = 'x';
    EXPECT_EQ(AcceptorOf(one)->Step(other).status().code(), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_TRUE(AcceptorOf(one)->Step(hello).ok());
}

// Whoever changes the purpose on its way has no proof for the new one.
TEST(PeerHandshakeTest, AProofIsForOnePurpose) {
  const GroupInfo two = Group(2), one = Group(1);
  const auto dialer = MakeDialerHandshake(Purpose::kTensors, two, 1);
  std::string hello = dialer->Start();
  hello.replace(0, 8, MakeDialerHandshake(Purpose::kControl, two, 1)->Start().substr(0, 8));
  const auto challenge = AcceptorOf(one)->Step(hello);
  ASSERT_TRUE(challenge.ok()) << challenge.status();
  EXPECT_EQ(dialer->Step(*challenge).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(PeerHandshakeTest, HelloNeverRepeats) {
  const GroupInfo two = Group(2);
  EXPECT_NE(MakeDialerHandshake(Purpose::kTensors, two, 1)->Start(),
            MakeDialerHandshake(Purpose::kTensors, two, 1)->Start());
}

// An acceptor accepts neither its own message (reflection) nor an old proof (replay).
TEST(PeerHandshakeTest, NothingCanBeSentBackOrPlayedAgain) {
  const GroupInfo one = Group(1), two = Group(2);
  const auto dialer = MakeDialerHandshake(Purpose::kTensors, two, 1);
  const std::string hello = dialer->Start();
  const auto first = AcceptorOf(one);
  const auto challenge = first->Step(hello);
  ASSERT_TRUE(challenge.ok());
  const auto proof = dialer->Step(*challenge);
  ASSERT_TRUE(proof.ok());
  const auto second = AcceptorOf(one);
  const auto fresh = second->Step(hello);
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(second->Step(*proof).ok()) << "played again";
  const auto third = AcceptorOf(one);
  const auto mirrored = third->Step(hello);
  ASSERT_TRUE(mirrored.ok());
  EXPECT_FALSE(third->Step(mirrored->substr(mirrored->size() - third->wanted())).ok())
      << "sent back";
}

}  // namespace
}  // namespace hvd::collectives::peer
