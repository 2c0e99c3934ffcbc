#include "base/net/strangers.h"

#include <vector>

#include "gtest/gtest.h"

namespace hvd::net {
namespace {

using Stage = Strangers::Stage;
using Id = Strangers::Id;

std::vector<Id> Come(Strangers& strangers, int count, const std::string& source,
                     Stage stage = Stage::kSilent) {
  std::vector<Id> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(strangers.Add(source));
    strangers.Reach(ids.back(), stage);
  }
  return ids;
}

TEST(StrangersTest, UpToTheBound_NobodyGoes) {
  Strangers strangers(3);
  Come(strangers, 3, "a");
  Come(strangers, 3, "a", Stage::kHeard);
  Come(strangers, 3, "a", Stage::kCertified);
  EXPECT_EQ(strangers.Surplus(), std::nullopt);
}

TEST(StrangersTest, OneSource_TheOldestGoes) {
  for (const Stage stage : {Stage::kSilent, Stage::kHeard, Stage::kCertified}) {
    Strangers strangers(3);
    const std::vector<Id> crowd = Come(strangers, 4, "a", stage);
    EXPECT_EQ(strangers.Surplus(), crowd[0]);
    strangers.Remove(crowd[0]);
    EXPECT_EQ(strangers.Surplus(), std::nullopt);
  }
}

// The member is the oldest, and has its place however many come from another address.
TEST(StrangersTest, CrowdOfOneSource_CostsAnotherSourceNothing) {
  Strangers strangers(3);
  const Id member = strangers.Add("member");
  for (int i = 0; i < 100; ++i) {
    strangers.Add("crowd");
    while (const auto gone = strangers.Surplus()) {
      EXPECT_NE(*gone, member);
      strangers.Remove(*gone);
    }
  }
}

TEST(StrangersTest, AsManyOfEachSource_TheOldestOfAllGoes) {
  Strangers strangers(3);
  strangers.Add("d");
  const Id second = strangers.Add("c");
  strangers.Add("b");
  strangers.Add("a");
  EXPECT_EQ(strangers.Surplus(), 1u);
  strangers.Remove(1);
  strangers.Add("e");
  EXPECT_EQ(strangers.Surplus(), second);
}

TEST(StrangersTest, CrowdOfOneStage_CostsTheOthersNothing) {
  Strangers strangers(2);
  const std::vector<Id> silent = Come(strangers, 2, "a");
  const std::vector<Id> heard = Come(strangers, 3, "a", Stage::kHeard);
  EXPECT_EQ(strangers.Surplus(), heard[0]);
  strangers.Remove(heard[0]);
  strangers.Add("a");
  EXPECT_EQ(strangers.Surplus(), silent[0]);
}

TEST(StrangersTest, Age_CountsFromTheStage) {
  Strangers strangers(2);
  const std::vector<Id> slow = Come(strangers, 1, "a");
  const std::vector<Id> heard = Come(strangers, 2, "a", Stage::kHeard);
  strangers.Reach(slow[0], Stage::kHeard);
  EXPECT_EQ(strangers.Surplus(), heard[0]);
}

TEST(StrangersTest, Reach_AnEarlierStageOrTheSame_ChangesNothing) {
  Strangers strangers(1);
  const std::vector<Id> heard = Come(strangers, 2, "a", Stage::kHeard);
  strangers.Reach(heard[0], Stage::kSilent);
  strangers.Reach(heard[0], Stage::kHeard);
  EXPECT_EQ(strangers.Surplus(), heard[0]);
}

TEST(StrangersTest, NoDescriptors_SilentOnesGoFirst_CertifiedOnesNever) {
  Strangers strangers(9);
  Come(strangers, 1, "a", Stage::kCertified);
  const std::vector<Id> heard = Come(strangers, 1, "a", Stage::kHeard);
  const std::vector<Id> silent = Come(strangers, 1, "b");
  EXPECT_EQ(strangers.LeastLikelyMember(), silent[0]);
  strangers.Remove(silent[0]);
  EXPECT_EQ(strangers.LeastLikelyMember(), heard[0]);
  strangers.Remove(heard[0]);
  EXPECT_EQ(strangers.LeastLikelyMember(), std::nullopt);
}

TEST(StrangersTest, NoDescriptors_TheLargestSourceLosesItsOldest) {
  Strangers strangers(9);
  strangers.Add("member");
  const std::vector<Id> crowd = Come(strangers, 2, "crowd");
  EXPECT_EQ(strangers.LeastLikelyMember(), crowd[0]);
}

}  // namespace
}  // namespace hvd::net
