#include "launcher/job/host_roster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HostRosterTest : public ::testing::Test {
 protected:
  std::vector<std::string> Due() { return roster_.Due(now_); }
  void StartAll() {
    for (const std::string& host : Due()) roster_.Started(host);
  }
  bool Fail(const std::string& host, const std::string& why, bool refused = false) {
    return roster_.Failed(host, why, refused, now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  HostRoster roster_;
};

TEST_F(HostRosterTest, Due_NewHosts_AtOnceAndOnce) {
  EXPECT_THAT(roster_.SetHosts({"b", "a"}), IsEmpty());
  EXPECT_THAT(Due(), ElementsAre("a", "b"));
  roster_.Started("a");
  EXPECT_THAT(Due(), ElementsAre("b"));
  roster_.Started("b");
  EXPECT_THAT(Due(), IsEmpty());
  EXPECT_EQ(roster_.NextDue(), absl::InfiniteFuture());
  roster_.SetHosts({"b", "a", "c"});
  EXPECT_THAT(Due(), ElementsAre("c"));
}

TEST_F(HostRosterTest, Failed_PausesDoubleUpToAMinuteForEver) {
  roster_.SetHosts({"a"});
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60, 60}) {
    StartAll();
    Fail("a", "no");
    EXPECT_THAT(Due(), IsEmpty());
    EXPECT_EQ(roster_.NextDue(), now_ + absl::Seconds(seconds));
    now_ = roster_.NextDue();
    EXPECT_THAT(Due(), ElementsAre("a"));
  }
}

TEST_F(HostRosterTest, Failed_AfterLongGoodWork_PauseIsShortAgain) {
  roster_.SetHosts({"a"});
  for (int i = 0; i < 3; ++i) {
    StartAll();
    roster_.Ready("a", now_);
    Fail("a", "no");
    now_ = roster_.NextDue();
  }
  StartAll();
  roster_.Ready("a", now_);
  now_ += HostRoster::kLongestPause;
  Fail("a", "no");
  EXPECT_EQ(roster_.NextDue(), now_ + HostRoster::kFirstPause);
}

TEST_F(HostRosterTest, Failed_SameReason_IsReportedOnce) {
  roster_.SetHosts({"a"});
  EXPECT_TRUE(Fail("a", "no route"));
  EXPECT_FALSE(Fail("a", "no route"));
  EXPECT_TRUE(Fail("a", "permission denied"));
}

TEST_F(HostRosterTest, SetHosts_HostWithAgentGoes_IsReturnedAndForgottenWhenItEnds) {
  roster_.SetHosts({"a", "b"});
  roster_.Started("a");
  EXPECT_THAT(roster_.SetHosts({}), ElementsAre("a"));
  EXPECT_THAT(roster_.SetHosts({}), IsEmpty());
  EXPECT_FALSE(Fail("a", "killed"));
  EXPECT_THAT(Due(), IsEmpty());
  roster_.SetHosts({"a"});
  EXPECT_THAT(Due(), ElementsAre("a"));
}

TEST_F(HostRosterTest, Left_StillListed_StaysAwayUntilListedAgain) {
  roster_.SetHosts({"a"});
  StartAll();
  roster_.Left("a");
  roster_.SetHosts({"a"});
  EXPECT_THAT(Due(), IsEmpty());
  EXPECT_EQ(roster_.NextDue(), absl::InfiniteFuture());
  roster_.SetHosts({});
  roster_.SetHosts({"a"});
  EXPECT_THAT(Due(), ElementsAre("a"));
}

TEST_F(HostRosterTest, Left_ListedAgain_IsDue) {
  roster_.SetHosts({"a"});
  StartAll();
  roster_.SetHosts({});
  roster_.SetHosts({"a"});
  EXPECT_THAT(Due(), IsEmpty());
  roster_.Left("a");
  EXPECT_THAT(Due(), ElementsAre("a"));
}

TEST_F(HostRosterTest, Failed_ListedAgain_IsRetried) {
  roster_.SetHosts({"a"});
  StartAll();
  roster_.SetHosts({});
  roster_.SetHosts({"a"});
  EXPECT_TRUE(Fail("a", "killed"));
  EXPECT_EQ(roster_.NextDue(), now_ + HostRoster::kFirstPause);
}

TEST_F(HostRosterTest, SetHosts_HostGoesAgain_IsReturnedAgain) {
  roster_.SetHosts({"a"});
  StartAll();
  EXPECT_THAT(roster_.SetHosts({}), ElementsAre("a"));
  EXPECT_THAT(roster_.SetHosts({"a"}), IsEmpty());
  EXPECT_THAT(roster_.SetHosts({}), ElementsAre("a"));
  roster_.Left("a");
  EXPECT_EQ(roster_.NextDue(), absl::InfiniteFuture());
}

TEST_F(HostRosterTest, WhyNone_NamesEachHostUnlessOneIsReady) {
  EXPECT_EQ(roster_.WhyNone(), "");
  roster_.SetHosts({"alpha", "beta", "gamma"});
  StartAll();
  Fail("alpha", "alpha: ssh was not let in");
  Fail("gamma", "exit code 1");
  EXPECT_EQ(roster_.WhyNone(),
            "alpha: ssh was not let in; beta: no answer yet; gamma: exit code 1");
  roster_.Ready("beta", now_);
  EXPECT_EQ(roster_.WhyNone(), "");
}

TEST_F(HostRosterTest, AllRefused_OnlyIfNobodyElseIsLeft) {
  EXPECT_FALSE(roster_.AllRefused());
  roster_.SetHosts({"a", "b"});
  StartAll();
  Fail("a", "no such command", true);
  EXPECT_FALSE(roster_.AllRefused());
  Fail("b", "no such command", true);
  EXPECT_TRUE(roster_.AllRefused());
  Fail("b", "no route", false);
  EXPECT_FALSE(roster_.AllRefused());
}

}  // namespace
}  // namespace hvd::launcher::job
