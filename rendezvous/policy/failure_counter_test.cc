#include "rendezvous/policy/failure_counter.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::policy {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(FailureCounterTest, Count_MoreThanAllowedWithinTheWindow_IsRefused) {
  FailureCounter counter({2, absl::Seconds(10)});
  EXPECT_TRUE(counter.Count(kStart));
  EXPECT_TRUE(counter.Count(kStart + absl::Seconds(1)));
  EXPECT_EQ(counter.Left(kStart + absl::Seconds(1)), 0);
  EXPECT_FALSE(counter.Count(kStart + absl::Seconds(9)));
  EXPECT_EQ(counter.total(), 3);
}

TEST(FailureCounterTest, Count_OldFailuresAreForgotten) {
  FailureCounter counter({1, absl::Seconds(10)});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(counter.Count(kStart + absl::Seconds(10 * i)));
  EXPECT_EQ(counter.Left(kStart + absl::Seconds(990 + 9)), 0);
  EXPECT_EQ(counter.Left(kStart + absl::Seconds(990 + 10)), 1);
}

}  // namespace
}  // namespace hvd::rendezvous::policy
