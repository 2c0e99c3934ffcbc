#include "rendezvous/policy/restart_budget.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::policy {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(RestartBudgetTest, Spend_MoreThanAllowedWithinTheWindow_IsRefused) {
  RestartBudget budget({2, absl::Seconds(10)});
  EXPECT_TRUE(budget.Spend(kStart));
  EXPECT_TRUE(budget.Spend(kStart + absl::Seconds(1)));
  EXPECT_EQ(budget.Left(kStart + absl::Seconds(1)), 0);
  EXPECT_FALSE(budget.Spend(kStart + absl::Seconds(9)));
  EXPECT_EQ(budget.total(), 3);
}

TEST(RestartBudgetTest, Spend_OldFailuresAreForgotten) {
  RestartBudget budget({1, absl::Seconds(10)});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budget.Spend(kStart + absl::Seconds(10 * i)));
  EXPECT_EQ(budget.Left(kStart + absl::Seconds(990 + 9)), 0);
  EXPECT_EQ(budget.Left(kStart + absl::Seconds(990 + 10)), 1);
}

}  // namespace
}  // namespace hvd::rendezvous::policy
