#include "worker_runtime/control/handshake.h"

#include "gtest/gtest.h"

namespace hvd::worker_runtime::control {
namespace {

collectives::GroupInfo Group(int rank, const std::string& secret = "secret", uint64_t epoch = 5) {
  return {Epoch(epoch), rank, 3, "127.0.0.1", secret};
}

TEST(HandshakeTest, BothKnowTheSecret_BothAreSure) {
  const collectives::GroupInfo root_group = Group(0), member_group = Group(2);
  RootHandshake root(root_group, "");
  MemberHandshake member(member_group, "");
  const std::string hello = *member.Start();
  ASSERT_EQ(hello.size(), root.wanted());
  const std::string challenge = *root.Step(hello);
  ASSERT_EQ(challenge.size(), member.wanted());
  const std::string proof = *member.Step(challenge);
  ASSERT_EQ(proof.size(), root.wanted());
  const std::string welcome = *root.Step(proof);
  EXPECT_EQ(root.wanted(), 0u);
  EXPECT_EQ(root.peer_rank(), 2);
  ASSERT_EQ(welcome.size(), member.wanted());
  ASSERT_TRUE(member.Step(welcome).ok());
  EXPECT_EQ(member.wanted(), 0u);
}

TEST(HandshakeTest, RootWithoutTheSecret_IsFoundOut) {
  const collectives::GroupInfo root_group = Group(0, "guess"), member_group = Group(1);
  RootHandshake root(root_group, "");
  MemberHandshake member(member_group, "");
  const std::string challenge = *root.Step(*member.Start());
  EXPECT_EQ(member.Step(challenge).status().code(), absl::StatusCode::kPermissionDenied);
}

// Someone in between with a session to each end, who hands on what they say.
TEST(HandshakeTest, OtherSession_IsFoundOut) {
  const collectives::GroupInfo root_group = Group(0), member_group = Group(1);
  RootHandshake root(root_group, "one session");
  MemberHandshake member(member_group, "another session");
  EXPECT_TRUE(absl::IsPermissionDenied(member.Step(*root.Step(*member.Start())).status()));
}

// It can't compute the proof; sending back what it got does not help.
TEST(HandshakeTest, MemberWithoutTheSecret_IsFoundOut) {
  const collectives::GroupInfo root_group = Group(0), member_group = Group(1, "guess");
  RootHandshake root(root_group, "");
  MemberHandshake member(member_group, "");
  const std::string challenge = *root.Step(*member.Start());
  EXPECT_EQ(root.Step(challenge.substr(32)).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_GT(root.wanted(), 0u);
}

TEST(HandshakeTest, OtherEpochRankOrNoise_IsRefused) {
  const collectives::GroupInfo root_group = Group(0);
  for (const collectives::GroupInfo& group : {Group(1, "secret", 4), Group(0), Group(3)}) {
    EXPECT_EQ(
        RootHandshake(root_group, "").Step(*MemberHandshake(group, "").Start()).status().code(),
        absl::StatusCode::kPermissionDenied);
  }
  const std::string noise(RootHandshake(root_group, "").wanted(), 'x');
  EXPECT_FALSE(RootHandshake(root_group, "").Step(noise).ok());
}

TEST(HandshakeTest, Hello_NeverRepeats) {
  const collectives::GroupInfo group = Group(1);
  EXPECT_NE(*MemberHandshake(group, "").Start(), *MemberHandshake(group, "").Start());
}

}  // namespace
}  // namespace hvd::worker_runtime::control
