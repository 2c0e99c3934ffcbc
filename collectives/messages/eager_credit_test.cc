#include "collectives/messages/eager_credit.h"

#include "gtest/gtest.h"

namespace hvd::collectives::messages {
namespace {

TEST(EagerCreditTest, LargeMessage_IsNeverSentAtOnce) {
  EagerCredit credit;
  EXPECT_TRUE(credit.Spend(kEagerBytes));
  EXPECT_FALSE(credit.Spend(kEagerBytes + 1));
}

TEST(EagerCreditTest, CreditIsUsedUpUntilTheReceiverGivesItOut) {
  EagerCredit credit;
  EagerDebt debt;
  int sent = 0;
  while (credit.Spend(1000)) {
    ++sent;
    EXPECT_TRUE(debt.Arrive(1000));
  }
  EXPECT_EQ(sent, static_cast<int>(kEagerWindow / EagerCost(1000)));
  size_t back = 0;
  int taken = 0;
  for (; back == 0; ++taken) back = debt.GiveOut(1000);
  EXPECT_GT(taken, 100);  // the receiver answers rarely
  credit.Return(back);
  for (int i = 0; i < taken; ++i) {
    EXPECT_TRUE(credit.Spend(1000));
    EXPECT_TRUE(debt.Arrive(1000));
  }
  EXPECT_FALSE(credit.Spend(1000));
}

TEST(EagerCreditTest, PeerThatLies_RaisesNoBound) {
  EagerCredit credit;
  credit.Return(~size_t{0});
  credit.Return(kEagerWindow);
  size_t sent = 0;
  while (credit.Spend(0)) ++sent;
  EXPECT_EQ(sent, kEagerWindow / EagerCost(0));
  EagerDebt debt;
  EXPECT_FALSE(debt.Arrive(kEagerBytes + 1));
  EagerDebt flooded;
  size_t kept = 0;
  while (flooded.Arrive(0)) ++kept;
  EXPECT_EQ(kept, sent);
}

}  // namespace
}  // namespace hvd::collectives::messages
