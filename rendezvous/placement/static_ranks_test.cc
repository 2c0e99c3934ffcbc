#include "rendezvous/placement/static_ranks.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "host: rank/size local_rank/local_size cross_rank/cross_size"
std::vector<std::string> Plan(const std::vector<HostSlots>& hosts, int max_workers,
                              RankOrder rank_order = RankOrder::kByMachine) {
  std::vector<std::string> lines;
  for (const auto& [host, slot, place] : AssignStaticRanks(hosts, max_workers, rank_order)) {
    lines.push_back(absl::StrCat(hosts[host].host, ": ", place.rank, "/", place.size, " ",
                                 place.local_rank, "/", place.local_size, " ", place.cross_rank,
                                 "/", place.cross_size));
  }
  return lines;
}

TEST(StaticRanksTest, EqualHosts_FillInOrder) {
  EXPECT_THAT(Plan({{"a", 2}, {"b", 2}}, 4),
              ElementsAre("a: 0/4 0/2 0/2", "a: 1/4 1/2 0/2", "b: 2/4 0/2 1/2", "b: 3/4 1/2 1/2"));
}

TEST(StaticRanksTest, UnequalHosts_CrossRankCountsOnlyHostsThatHaveTheLocalRank) {
  EXPECT_THAT(Plan({{"a", 1}, {"b", 3}, {"c", 2}}, 6),
              ElementsAre("a: 0/6 0/1 0/3", "b: 1/6 0/3 1/3", "b: 2/6 1/3 0/2", "b: 3/6 2/3 0/1",
                          "c: 4/6 0/2 2/3", "c: 5/6 1/2 1/2"));
}

TEST(StaticRanksTest, FewerWorkersThanSlots_TheLimitIsReal) {
  EXPECT_THAT(Plan({{"a", 4}, {"b", 4}}, 2), ElementsAre("a: 0/2 0/2 0/1", "a: 1/2 1/2 0/1"));
  EXPECT_THAT(Plan({{"a", 2}, {"b", 2}}, 3),
              ElementsAre("a: 0/3 0/2 0/2", "a: 1/3 1/2 0/1", "b: 2/3 0/1 1/2"));
}

TEST(StaticRanksTest, FewerSlotsThanWorkers_SizeIsTheNumberOfSlots) {
  EXPECT_THAT(Plan({{"a", 1}}, 5), ElementsAre("a: 0/1 0/1 0/1"));
}

TEST(StaticRanksTest, HostsOfOneMachine_ShareItsLocalRanks) {
  EXPECT_THAT(Plan({{"a", 2, "m"}, {"b", 2, "n"}, {"c", 1, "m"}}, 5),
              ElementsAre("a: 0/5 0/3 0/2", "a: 1/5 1/3 0/2", "c: 2/5 2/3 0/1", "b: 3/5 0/2 1/2",
                          "b: 4/5 1/2 1/2"));
}

TEST(StaticRanksTest, ByHost_RanksOfAMachineNeedNotBeNeighbours) {
  EXPECT_THAT(
      Plan({{"a", 1, "m"}, {"b", 2, "n"}, {"c", 1, "m"}, {"d", 1, "o"}}, 5, RankOrder::kByHost),
      ElementsAre("a: 0/5 0/2 0/3", "b: 1/5 0/2 1/3", "b: 2/5 1/2 0/2", "c: 3/5 1/2 1/2",
                  "d: 4/5 0/1 2/3"));
}

TEST(StaticRanksTest, HostsOfOneMachine_HaveSlotsOfTheirOwn) {
  const std::vector<PlacedSlot> plan = AssignStaticRanks({{"a", 2, "m"}, {"b", 2, "m"}}, 3);
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_EQ(plan[1].slot, 1);
  EXPECT_EQ(plan[2].host, 1);
  EXPECT_EQ(plan[2].slot, 0);
  EXPECT_EQ(plan[2].place.local_rank, 2);
}

TEST(StaticRanksTest, HostsWithoutSlots_AreSkipped) {
  EXPECT_THAT(Plan({{"a", 0}, {"b", -3}, {"c", 1}}, 4), ElementsAre("c: 0/1 0/1 0/1"));
  EXPECT_THAT(Plan({}, 4), IsEmpty());
  EXPECT_THAT(Plan({{"a", 2}}, 0), IsEmpty());
}

}  // namespace
}  // namespace hvd::rendezvous::placement
