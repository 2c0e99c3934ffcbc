#include "collectives/gloo/link/proof.h"

#include "gtest/gtest.h"

namespace hvd::collectives::gloo::link {
namespace {

const std::string kNonceA(kNonceBytes, 'a');
const std::string kNonceB(kNonceBytes, 'b');

ProofSubject Subject() { return {Epoch(3), 2, 0, 1, kNonceA, kNonceB, "binding"}; }

TEST(ProofTest, CheckProof_AcceptsWhatTheSameSecretMade) {
  const std::string proof = MakeProof("secret", Subject());
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(CheckProof("secret", Subject(), proof));
}

TEST(ProofTest, CheckProof_RefusesAnotherSecretAndDamage) {
  std::string proof = MakeProof("secret", Subject());
  EXPECT_FALSE(CheckProof("Secret", Subject(), proof));
  EXPECT_FALSE(CheckProof("secret", Subject(), proof.substr(1)));
  proof[31] ^= 1;
  EXPECT_FALSE(CheckProof("secret", Subject(), proof));
}

TEST(ProofTest, CheckProof_EveryPartOfTheSubjectCounts) {
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
  other.from_nonce = kNonceB;
  EXPECT_FALSE(CheckProof("secret", other, proof));
  other = Subject();
  other.to_nonce = kNonceA;
  EXPECT_FALSE(CheckProof("secret", other, proof));
}

TEST(ProofTest, MakeNonce_IsFresh) {
  EXPECT_EQ(MakeNonce().size(), kNonceBytes);
  EXPECT_NE(MakeNonce(), MakeNonce());
}

}  // namespace
}  // namespace hvd::collectives::gloo::link
