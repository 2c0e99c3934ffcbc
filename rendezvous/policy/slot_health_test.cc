#include "rendezvous/policy/slot_health.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::policy {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(SlotHealthTest, Failed_FirstIsFree_ThenRestsDouble) {
  SlotHealth health(std::nullopt);
  EXPECT_EQ(health.Failed("a", 0, 1, kStart), absl::ZeroDuration());
  EXPECT_EQ(health.RestsUntil("a", 0, kStart), absl::InfinitePast());
  EXPECT_EQ(health.Failed("a", 0, 1, kStart), absl::Seconds(1));
  EXPECT_EQ(health.Failed("a", 0, 1, kStart), absl::Seconds(2));
  EXPECT_EQ(health.RestsUntil("a", 0, kStart), kStart + absl::Seconds(2));
  EXPECT_EQ(health.RestsUntil("a", 0, kStart + absl::Seconds(2)), absl::InfinitePast());
  for (int i = 0; i < 100; ++i) health.Failed("a", 0, 1, kStart);
  EXPECT_EQ(health.Failed("a", 0, 1, kStart), absl::Minutes(1)) << "no longer than this";
}

TEST(SlotHealthTest, Failed_FreeOnes_CostNoRest) {
  SlotHealth health(std::nullopt);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(health.Failed("a", 0, 5, kStart), absl::ZeroDuration());
  EXPECT_EQ(health.Failed("a", 0, 5, kStart), absl::Seconds(1));
}

TEST(SlotHealthTest, Failed_AnotherSlotOrHost_IsNotBlamed) {
  SlotHealth health(Cooldown{absl::Seconds(5), absl::Seconds(5)});
  health.Failed("a", 0, 1, kStart);
  EXPECT_EQ(health.RestsUntil("a", 1, kStart), absl::InfinitePast());
  EXPECT_EQ(health.RestsUntil("b", 0, kStart), absl::InfinitePast());
}

TEST(SlotHealthTest, Failed_AfterAQuietTime_IsTheFirstAgain) {
  SlotHealth health(std::nullopt);
  health.Failed("a", 0, 1, kStart);
  const absl::Time later = kStart + SlotHealth::kQuietTime + absl::Seconds(1);
  EXPECT_EQ(health.Failed("a", 0, 1, later), absl::ZeroDuration());
}

TEST(SlotHealthTest, Failed_WithACooldown_RestsFromTheFirst) {
  SlotHealth health(Cooldown{absl::Seconds(3), absl::Seconds(10)});
  EXPECT_EQ(health.Failed("a", 0, 1, kStart), absl::Seconds(3));
  EXPECT_EQ(health.Failed("a", 0, 1, kStart), absl::Seconds(6));
  EXPECT_EQ(health.Failed("a", 0, 1, kStart), absl::Seconds(10));
}

}  // namespace
}  // namespace hvd::rendezvous::policy
