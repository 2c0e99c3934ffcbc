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

  static absl::Time At(int second) { return absl::UnixEpoch() + absl::Seconds(second); }
  void Break(absl::Time now) {
    epochs_.End("all died", &effects_);
    epochs_.broken_at = now;
  }

  Hosts hosts_;
  Workers workers_;
  Epochs epochs_;
  std::vector<Effect> effects_;
};

TEST_F(EpochsTest, End_NotifiesWatchersOnce) {
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
  epochs_.left.commit = 1;
  epochs_.left.lost_steps = 3;
  epochs_.left.lost_time = absl::Seconds(2);
  const Loss loss = epochs_.CountLoss(1, At(9));
  EXPECT_EQ(loss.steps, 3);
  EXPECT_EQ(epochs_.lost_steps, 3);
  EXPECT_EQ(epochs_.lost_time, absl::Seconds(2));
}

TEST_F(EpochsTest, CountLoss_NobodyIsLeftToSay_SinceTheCommit) {
  epochs_.times.GoOn(0, At(0));
  epochs_.times.Made(1, At(5), false);
  epochs_.times.Made(2, At(7), false);
  Break(At(9));
  EXPECT_EQ(epochs_.CountLoss(1, At(20)).time, absl::Seconds(4)) << "a copy, older than the newest";
  EXPECT_EQ(epochs_.lost_time, absl::Seconds(4));
}

TEST_F(EpochsTest, CountLoss_OlderThanWhatMembersSay_SinceThatCommit) {
  epochs_.times.GoOn(0, At(0));
  epochs_.times.Made(1, At(5), false);
  epochs_.left.any = true;
  epochs_.left.commit = 2;
  epochs_.left.lost_time = absl::Milliseconds(10);
  Break(At(9));
  EXPECT_EQ(epochs_.CountLoss(1, At(20)).time, absl::Seconds(4));
}

TEST_F(EpochsTest, CountLoss_NotBroken_NothingIsLost) {
  epochs_.left.lost_steps = 3;
  EXPECT_EQ(epochs_.CountLoss(1, At(1)).steps, 0);
  EXPECT_EQ(epochs_.lost_steps, 0);
  EXPECT_EQ(epochs_.CountBegin(0).time, absl::ZeroDuration());
}

TEST_F(EpochsTest, CountBegin_NobodyHasACommit_SinceTheCheckpointThatWasLoaded) {
  epochs_.times.GoOn(0, At(0));
  epochs_.times.Made(7, At(31), true);
  epochs_.times.Made(9, At(32), false);
  epochs_.reported_commit = 9;
  epochs_.committed_at = At(32);
  Break(At(33));
  EXPECT_EQ(epochs_.CountLoss(0, At(40)).time, absl::ZeroDuration());
  epochs_.formed_at = At(40);
  epochs_.formed_commit = 0;
  EXPECT_EQ(epochs_.CountBegin(7).time, absl::Seconds(2));
  EXPECT_EQ(epochs_.CountBegin(7).time, absl::ZeroDuration()) << "reported again";
  EXPECT_EQ(epochs_.lost_time, absl::Seconds(2));
  EXPECT_EQ(epochs_.reported_commit, 7);
  EXPECT_EQ(epochs_.formed_commit, 7);
  epochs_.broken.reset();
  Break(At(41));
  EXPECT_EQ(epochs_.CountLoss(0, At(50)).time, absl::ZeroDuration());
  epochs_.formed_at = At(50);
  EXPECT_EQ(epochs_.CountBegin(7).time, absl::Seconds(1)) << "only what was done since then";
}

TEST_F(EpochsTest, CountBegin_NoCheckpoint_SinceTheStart) {
  epochs_.times.GoOn(0, At(0));
  epochs_.times.Made(9, At(32), false);
  epochs_.reported_commit = 9;
  Break(At(33));
  EXPECT_EQ(epochs_.CountLoss(0, At(40)).time, absl::ZeroDuration());
  epochs_.formed_at = At(40);
  EXPECT_EQ(epochs_.CountBegin(0).time, absl::Seconds(33));
}

TEST_F(EpochsTest, CountLoss_ACopyIsOlderThanTheCheckpoint_WaitsForRankZero) {
  epochs_.times.GoOn(0, At(0));
  epochs_.times.Made(5, At(5), false);
  epochs_.times.Made(7, At(7), true);
  epochs_.checkpoint.commit = 7;
  Break(At(9));
  EXPECT_EQ(epochs_.CountLoss(5, At(20)).time, absl::ZeroDuration());
  epochs_.formed_at = At(20);
  epochs_.formed_commit = 5;
  EXPECT_EQ(epochs_.CountBegin(7).time, absl::Seconds(2));
}

TEST_F(EpochsTest, Check_NamesTheViolation) {
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
