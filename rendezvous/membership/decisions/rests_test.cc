#include "rendezvous/membership/decisions/rests.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Hosts a, b and c with a slot each. Two of them are enough.
class RestsTest : public testing::Test {
 protected:
  RestsTest() {
    for (const std::string name : {"a", "b", "c"}) {
      Host& host = hosts_.Add({name, 1});
      host.agent = Incarnation(hosts_.IndexOf(host) + 1);
    }
  }

  // In the newest world, and in one before it.
  void CloseAgain(const std::string& host, const std::string& other) {
    epochs_.left.closed.push_back(std::minmax(host, other));
    epochs_.closed_ways.push_back(std::minmax(host, other));
  }
  void LetRest(Host* host) { host->rests_until = now_ + absl::Seconds(30); }
  std::string Next(uint64_t commit = 0) {
    const Host* const next = rests().Next(commit);
    return next == nullptr ? "none" : next->slots.host;
  }
  Rests rests() { return Rests(Standing(hosts_, workers_, epochs_), /*min_workers=*/2); }

  const absl::Time now_ = absl::UnixEpoch();
  Hosts hosts_;
  Workers workers_;
  Epochs epochs_;
};

TEST_F(RestsTest, Next_AWayWasClosedInOneWorldOnly_None) {
  epochs_.left.closed.push_back({"a", "b"});
  EXPECT_EQ(Next(), "none");
}

TEST_F(RestsTest, Next_AWayWasClosedTwice_OneOfTheTwo) {
  CloseAgain("a", "b");
  EXPECT_EQ(Next(), "b");
  hosts_[1].commit = 1;
  EXPECT_EQ(Next(), "a") << "b alone has a commit";
}

// a is at more closed ways than the others.
TEST_F(RestsTest, Next_ItWouldCostSeveralCommits_AnotherOne) {
  CloseAgain("a", "b");
  CloseAgain("a", "c");
  hosts_[0].commit = 6;
  hosts_[1].commit = 5;
  EXPECT_EQ(Next(), "a");
  hosts_[0].commit = 7;
  EXPECT_EQ(Next(), "c");
  LetRest(&hosts_[1]);
  EXPECT_EQ(Next(), "none") << "two must not rest";
}

TEST_F(RestsTest, Next_TheWorldMadeACommitOrLostAMember_None) {
  CloseAgain("a", "b");
  EXPECT_EQ(Next(/*commit=*/1), "none");
  epochs_.lost_hosts = true;
  EXPECT_EQ(Next(), "none");
}

TEST_F(RestsTest, Next_TooFewSlotsWithoutIt_None) {
  CloseAgain("a", "b");
  hosts_[2].agent.reset();
  EXPECT_EQ(Next(), "none");
}

TEST_F(RestsTest, Next_TheOtherRestsAlready_None) {
  CloseAgain("a", "b");
  LetRest(&hosts_[1]);
  EXPECT_EQ(Next(), "none");
}

// b rests because of a, and now c does not reach a either.
TEST_F(RestsTest, Next_MoreThanOneDoNotReachAHost_ThatOneAndTheOthersAreUsedAgain) {
  epochs_.closed_ways.push_back({"a", "b"});
  LetRest(&hosts_[1]);
  CloseAgain("a", "c");
  hosts_[0].commit = 1;
  EXPECT_EQ(Next(), "a");
  EXPECT_THAT(rests().UnreachedBy(hosts_[0]), ElementsAre("b", "c"));

  EXPECT_FALSE(rests().IsOver(hosts_[1], now_));
  LetRest(&hosts_[0]);
  EXPECT_TRUE(rests().IsOver(hosts_[1], now_));
  EXPECT_FALSE(rests().IsOver(hosts_[0], now_)) << "b is to be used again, c is used";
}

TEST_F(RestsTest, IsOver_ByTime) {
  CloseAgain("a", "b");
  LetRest(&hosts_[1]);
  EXPECT_FALSE(rests().IsOver(hosts_[1], now_));
  EXPECT_TRUE(rests().IsOver(hosts_[1], now_ + absl::Seconds(30)));
}

TEST_F(RestsTest, IsOver_TheOtherHostHasGone) {
  CloseAgain("a", "b");
  hosts_.Add({"d", 2}).agent = Incarnation(4);
  LetRest(&hosts_[1]);
  hosts_[0].agent.reset();
  EXPECT_TRUE(rests().IsOver(hosts_[1], now_));
  EXPECT_THAT(rests().UnreachedBy(hosts_[1]), IsEmpty());
}

TEST_F(RestsTest, IsOver_TheOthersHaveLostTheCommits) {
  CloseAgain("a", "b");
  LetRest(&hosts_[1]);
  hosts_[0].commit = hosts_[1].commit = 5;
  EXPECT_FALSE(rests().IsOver(hosts_[1], now_));
  hosts_[0].commit = 0;
  EXPECT_TRUE(rests().IsOver(hosts_[1], now_));
}

TEST_F(RestsTest, IsOver_TooFewSlotsWithoutIt) {
  CloseAgain("a", "b");
  LetRest(&hosts_[1]);
  hosts_[2].agent.reset();
  EXPECT_TRUE(rests().IsOver(hosts_[1], now_));
}

}  // namespace
}  // namespace hvd::rendezvous::membership::decisions
