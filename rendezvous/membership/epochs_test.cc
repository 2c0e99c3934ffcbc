#include "rendezvous/membership/epochs.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

using Move = lifecycle::WorkerLifecycle::Move;

// A world of one worker.
class EpochsTest : public testing::Test {
 protected:
  EpochsTest() {
    hosts_.Add({"a", 1});
    Worker worker;
    worker.id = WorkerId(1);
    worker.last_world = Epoch(1);
    worker.life.Make(Move::kEnter);
    workers_.Add(worker, &hosts_);
    epochs_.current = Epoch(1);
    World world;
    world.epoch = Epoch(1);
    world.members.emplace_back().worker.id = WorkerId(1);
    epochs_.world = std::make_shared<const World>(world);
    epochs_.rounds = ExchangeRounds(1);
    epochs_.watches.Add({CallId(7), {WorkerId(1), Incarnation(1)}, Epoch(1)});
  }

  Hosts hosts_;
  Workers workers_;
  Epochs epochs_;
  std::vector<Effect> effects_;
};

TEST_F(EpochsTest, End_TellsWhoWatches_Once) {
  epochs_.End("a peer died", &effects_);
  EXPECT_FALSE(epochs_.whole());
  ASSERT_EQ(effects_.size(), 1);
  EXPECT_EQ(std::get<ReplyWatch>(effects_[0]).reason, "a peer died");
  epochs_.End("another", &effects_);
  EXPECT_EQ(effects_.size(), 1);
  EXPECT_EQ(*epochs_.broken, "a peer died");
}

TEST_F(EpochsTest, EndedIdle_OnlyIfNobodyFailedAndNothingWasDone) {
  epochs_.left.cause = "NCCL is missing";
  epochs_.left.host = "a";
  epochs_.left.rank = 0;
  EXPECT_FALSE(epochs_.EndedIdle(0));
  epochs_.End("rank 0 asks for the next world", &effects_);
  EXPECT_TRUE(epochs_.EndedIdle(0));
  EXPECT_FALSE(epochs_.EndedIdle(1));
  EXPECT_EQ(
      epochs_.IdleText(2),
      "world 1 ended before an operation was completed in it, as 1 world before it: rank 0 on "
      "host a: NCCL is missing");
  EXPECT_EQ(epochs_.IdleVerdict().summary, "rank 0 on host a: NCCL is missing");
  epochs_.left.worked = true;
  EXPECT_FALSE(epochs_.EndedIdle(0));
}

TEST_F(EpochsTest, IdleInARow_LostPeersAreCountedApart) {
  epochs_.without_progress = 1;
  epochs_.peers_lost = 4;
  EXPECT_EQ(epochs_.IdleInARow(), 2);
  epochs_.left.caused_by_peer = true;
  EXPECT_EQ(epochs_.IdleInARow(), 5);
}

TEST_F(EpochsTest, CountLoss_WhatMembersSay) {
  epochs_.End("a peer died", &effects_);
  epochs_.left.any = true;
  epochs_.left.lost_steps = 3;
  epochs_.left.lost_time = absl::Seconds(2);
  epochs_.CountLoss(1);
  EXPECT_EQ(epochs_.lost_steps, 3);
  EXPECT_EQ(epochs_.lost_time, absl::Seconds(2));
}

TEST_F(EpochsTest, CountLoss_NobodyIsLeftToSay_SinceTheNewestKnownCommit) {
  epochs_.End("all died", &effects_);
  epochs_.formed_at = absl::UnixEpoch();
  epochs_.broken_at = absl::UnixEpoch() + absl::Seconds(9);
  epochs_.reported_commit = 1;
  epochs_.committed_at = absl::UnixEpoch() + absl::Seconds(5);
  epochs_.CountLoss(1);
  EXPECT_EQ(epochs_.lost_time, absl::Seconds(4));
}

TEST_F(EpochsTest, CountLoss_NotBroken_NothingIsLost) {
  epochs_.left.lost_steps = 3;
  epochs_.CountLoss(1);
  EXPECT_EQ(epochs_.lost_steps, 0);
  EXPECT_EQ(epochs_.left.lost_steps, 0);
}

TEST_F(EpochsTest, Check_NamesWhatIsWrong) {
  EXPECT_EQ(epochs_.Check(workers_), "");
  epochs_.changing = "1 worker to join";
  EXPECT_EQ(epochs_.Check(workers_), "a watch does not know of the change");
  epochs_.changing.reset();
  epochs_.quorum_since = absl::UnixEpoch();
  EXPECT_EQ(epochs_.Check(workers_), "a quorum for a world that nobody awaits");
  epochs_.StopWaiting();
  epochs_.broken = "a peer died";
  EXPECT_EQ(epochs_.Check(workers_), "a broken epoch is watched");
  workers_[0].place.rank = 1;
  EXPECT_EQ(epochs_.Check(workers_), "worker 1 is no member of the world");
  epochs_.current = Epoch(2);
  EXPECT_EQ(epochs_.Check(workers_), "the world is of another epoch");
}

}  // namespace
}  // namespace hvd::rendezvous::membership
