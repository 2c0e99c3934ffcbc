#include "collectives/peer_proof.h"

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

ProofSubject Subject() { return {"protocol", Epoch(3), 2, 0, 1, "transcript", "binding"}; }

TEST(PeerProofTest, CheckProof_AcceptsWhatTheSameSecretMade) {
  const std::string proof = MakeProof("secret", Subject());
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(CheckProof("secret", Subject(), proof));
}

TEST(PeerProofTest, CheckProof_RefusesAnotherSecretAndDamage) {
  std::string proof = MakeProof("secret", Subject());
  EXPECT_FALSE(CheckProof("Secret", Subject(), proof));
  EXPECT_FALSE(CheckProof("secret", Subject(), proof.substr(1)));
  proof[31] ^= 1;
  EXPECT_FALSE(CheckProof("secret", Subject(), proof));
}

TEST(PeerProofTest, CheckProof_EveryPartOfTheSubjectCounts) {
  const std::string proof = MakeProof("secret", Subject());
  ProofSubject other = Subject();
  other.epoch = Epoch(4);
  EXPECT_FALSE(CheckProof("secret", other, proof));
  other = Subject();
  other.size = 3;
  EXPECT_FALSE(CheckProof("secret", other, proof));
  other = Subject();
  other.binding = "another";
  EXPECT_FALSE(CheckProof("secret", other, proof));
  other = Subject();
  std::swap(other.from, other.to);
  EXPECT_FALSE(CheckProof("secret", other, proof)) << "sent back to its maker";
  other = Subject();
  other.protocol = "another";
  EXPECT_FALSE(CheckProof("secret", other, proof));
  other = Subject();
  other.transcript = "another";
  EXPECT_FALSE(CheckProof("secret", other, proof));
  other = Subject();
  other.to = kEveryRank;
  EXPECT_FALSE(CheckProof("secret", other, proof));
  other = Subject();
  other.transcript = "transcriptb";
  other.binding = "inding";
  EXPECT_FALSE(CheckProof("secret", other, proof)) << "the same text, cut elsewhere";
}

TEST(PeerProofTest, MakeNonce_IsFresh) {
  EXPECT_EQ(MakeNonce().size(), kNonceBytes);
  EXPECT_NE(MakeNonce(), MakeNonce());
}

}  // namespace
}  // namespace hvd::collectives
