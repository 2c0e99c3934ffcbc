#include "rendezvous/placement/elastic_ranks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A line for each member: "candidate local/size cross/size".
std::vector<std::string> Plan(const std::vector<Candidate>& candidates, int max_workers = 100) {
  std::vector<std::string> lines;
  for (const PlannedMember& member : AssignElasticRanks(candidates, max_workers)) {
    const Placement& place = member.place;
    EXPECT_EQ(place.rank, static_cast<int>(lines.size()));
    lines.push_back(absl::StrCat(member.candidate, " ", place.local_rank, "/", place.local_size,
                                 " ", place.cross_rank, "/", place.cross_size));
  }
  return lines;
}

TEST(ElasticRanksTest, Nobody) { EXPECT_THAT(Plan({}), IsEmpty()); }

TEST(ElasticRanksTest, Newcomers_FollowMachinesAndSlots) {
  EXPECT_THAT(Plan({{0, 1}, {1, 0}, {0, 0}}), ElementsAre("2 0/2 0/2", "0 1/2 0/1", "1 0/1 1/2"));
}

TEST(ElasticRanksTest, Survivors_KeepTheirOrder) {
  EXPECT_THAT(Plan({{1, 1, 3}, {0, 1, 1}, {1, 0, 2}}),
              ElementsAre("1 0/1 0/2", "2 0/2 1/2", "0 1/2 0/1"));
}

TEST(ElasticRanksTest, Newcomer_TakesTheFreeSlotsLocalRank) {
  EXPECT_THAT(Plan({{0, 0, -1}, {0, 1, 0}, {0, 2, 1}}),
              ElementsAre("1 1/3 0/1", "2 2/3 0/1", "0 0/3 0/1"));
}

TEST(ElasticRanksTest, NewestCommit_Leads) {
  EXPECT_THAT(Plan({{0, 0, 0, 5}, {0, 1, 1, 5}, {1, 0, 2, 6}, {1, 1, 3, 6}}),
              ElementsAre("2 0/2 0/2", "3 1/2 0/2", "0 0/2 1/2", "1 1/2 1/2"));
}

TEST(ElasticRanksTest, NewcomerWithANewerCommit_Leads) {
  EXPECT_THAT(Plan({{0, 0, 0, 5}, {1, 0, -1, 6}}), ElementsAre("1 0/1 0/2", "0 0/1 1/2"));
}

TEST(ElasticRanksTest, Slots_MayBeFarApart) {
  const int64_t of_another_agent = int64_t{1} << 40;
  EXPECT_THAT(Plan({{0, of_another_agent, 1}, {0, 1, 0}, {0, of_another_agent + 1, 2}, {0, 0, -1}}),
              ElementsAre("1 1/4 0/1", "0 2/4 0/1", "2 3/4 0/1", "3 0/4 0/1"));
}

TEST(ElasticRanksTest, TooMany_NewcomersStayOut) {
  EXPECT_THAT(Plan({{0, 0, -1}, {0, 1, 1}, {0, 2, 0}}, 2), ElementsAre("2 1/2 0/1", "1 0/2 0/1"));
}

TEST(ElasticRanksTest, TooMany_TheNewestCommitStays) {
  EXPECT_THAT(Plan({{0, 0, 0, 7}, {0, 1, 1, 8}, {1, 0, 2, 8}}, 1), ElementsAre("1 0/1 0/1"));
  EXPECT_THAT(Plan({{0, 0, 0, 7}, {0, 1, 1, 7}, {1, 0, 2, 8}}, 2),
              ElementsAre("2 0/1 0/2", "0 0/1 1/2"));
}

TEST(ElasticRanksTest, MachinesWithoutSurvivors_ComeLast) {
  EXPECT_THAT(Plan({{0, 0, -1}, {1, 0, 0}, {2, 0, 1}}),
              ElementsAre("1 0/1 0/3", "2 0/1 1/3", "0 0/1 2/3"));
}

// As torchrun places them: the first rank of the machine plus the local rank.
TEST(ElasticRanksTest, WhoStartsAnew_IsPlacedByMachineAndSlot) {
  EXPECT_THAT(
      Plan({{1, 0, 0, 0, true}, {0, 1, 1, 0, true}, {0, 0, -1, 0, true}, {1, 1, -1, 0, true}}),
      ElementsAre("2 0/2 0/2", "1 1/2 0/2", "0 0/2 1/2", "3 1/2 1/2"));
}

TEST(ElasticRanksTest, TooManyWhoStartAnew_NewcomersStayOut) {
  EXPECT_THAT(Plan({{0, 0, -1, 0, true}, {0, 1, 1, 0, true}, {0, 2, 0, 0, true}}, 2),
              ElementsAre("1 0/2 0/1", "2 1/2 0/1"));
}

}  // namespace
}  // namespace hvd::rendezvous::placement
