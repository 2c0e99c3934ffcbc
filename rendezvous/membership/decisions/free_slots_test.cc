#include "rendezvous/membership/decisions/free_slots.h"

#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const absl::Time kNow = absl::UnixEpoch();

FreeSlot Usable(int host, int slot) { return {host, slot, absl::InfinitePast(), kNow}; }
FreeSlot Resting(int host, int slot) {
  return {host, slot, kNow + absl::Seconds(9), kNow - absl::Seconds(1)};
}

std::vector<std::pair<int, int>> Chosen(SlotNeed need, const std::vector<FreeSlot>& free,
                                        bool may_try = false) {
  std::vector<std::pair<int, int>> places;
  for (const FreeSlot& slot : SlotsToFill(need, free, may_try))
    places.emplace_back(slot.host, slot.slot);
  return places;
}

TEST(FreeSlotsTest, OnlyHostsThatTakePart_WithoutTheTakenSlots) {
  Hosts hosts;
  for (const char* name : {"a", "b", "c"}) hosts.Add({name, 2}).agent = Incarnation(1);
  hosts[1].agent.reset();
  hosts[2].rests_until = kNow + absl::Seconds(30);
  Workers workers;
  Worker worker;
  worker.id = WorkerId(1);
  workers.Add(worker, &hosts);
  const std::vector<FreeSlot> free =
      FreeSlots(hosts, workers, policy::SlotHealth(std::nullopt), kNow);
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(std::make_pair(free[0].host, free[0].slot), std::make_pair(0, 1));
}

TEST(SlotsToFillTest, AsManyAsAreWanted) {
  EXPECT_THAT(Chosen({2}, {Usable(0, 0), Usable(0, 1), Usable(1, 0)}),
              ElementsAre(Pair(0, 0), Pair(0, 1)));
  EXPECT_THAT(Chosen({0}, {Usable(0, 0)}), IsEmpty());
}

TEST(SlotsToFillTest, BeyondThem_OneOnTheHostOfTheCommit) {
  EXPECT_THAT(Chosen({0, 0, /*holder=*/1}, {Usable(0, 0), Usable(1, 0), Usable(1, 1)}),
              ElementsAre(Pair(1, 0)));
}

TEST(SlotsToFillTest, ARestingSlot_OnlyIfTheNeedIsUrgentAndItsPauseIsOver) {
  const std::vector<FreeSlot> free = {Resting(0, 0)};
  EXPECT_THAT(Chosen({1, 0}, free, /*may_try=*/true), IsEmpty());
  EXPECT_THAT(Chosen({1, 1}, free, /*may_try=*/false), IsEmpty());
  EXPECT_THAT(Chosen({1, 1}, free, /*may_try=*/true), ElementsAre(Pair(0, 0)));
}

TEST(NextFreeSlotTest, TheEndOfARest_OrTheNextTryIfTheNeedIsUrgent) {
  const absl::Time next_try = kNow + absl::Seconds(2);
  const std::vector<FreeSlot> free = {Usable(0, 0), Resting(0, 1)};
  EXPECT_EQ(NextFreeSlot({1, 0}, free, next_try, kNow), kNow + absl::Seconds(9));
  EXPECT_EQ(NextFreeSlot({1, 1}, free, next_try, kNow), next_try);
  EXPECT_EQ(NextFreeSlot({1, 1}, {}, next_try, kNow), absl::InfiniteFuture());
}

}  // namespace
}  // namespace hvd::rendezvous::membership::decisions
