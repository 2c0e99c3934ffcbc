#include "rendezvous/lifecycle/worker_lifecycle.h"

#include <vector>

#include "gtest/gtest.h"

namespace hvd::rendezvous::lifecycle {
namespace {

using Life = WorkerLifecycle::Life;
using Move = WorkerLifecycle::Move;
using Part = WorkerLifecycle::Part;

constexpr int kMoves = static_cast<int>(Move::kBlame) + 1;

// In which all of these are allowed.
WorkerLifecycle After(const std::vector<Move>& moves) {
  WorkerLifecycle worker;
  for (const Move move : moves) EXPECT_TRUE(worker.Make(move)) << worker.Check();
  return worker;
}

TEST(WorkerLifecycleTest, New_IsRunningAndOutside) {
  const WorkerLifecycle worker;
  EXPECT_EQ(worker.part(), Part::kOutside);
  EXPECT_EQ(worker.life(), Life::kRunning);
  EXPECT_EQ(worker.Check(), "");
}

TEST(WorkerLifecycleTest, Member_FinishesAndLeaves) {
  const WorkerLifecycle worker = After({Move::kEnter, Move::kFinish, Move::kEndWell});
  EXPECT_TRUE(worker.finished());
  EXPECT_EQ(worker.life(), Life::kLeft);
}

TEST(WorkerLifecycleTest, Member_EndsOutsideItsWorld) {
  EXPECT_EQ(After({Move::kEnter, Move::kEndBadly}).part(), Part::kOutside);
}

TEST(WorkerLifecycleTest, Finished_MayComeAgain_OrLeftTooEarly) {
  EXPECT_TRUE(After({Move::kEnter, Move::kFinish, Move::kEnter}).member());
  EXPECT_EQ(After({Move::kEnter, Move::kFinish, Move::kDisown}).part(), Part::kOutside);
}

TEST(WorkerLifecycleTest, Failing_GoesOnWhenItAsks) {
  WorkerLifecycle worker = After({Move::kSayFailing});
  EXPECT_EQ(worker.life(), Life::kFailing);
  EXPECT_TRUE(worker.failure_told());
  EXPECT_TRUE(worker.Make(Move::kGoOn));
  EXPECT_TRUE(worker.running());
  EXPECT_FALSE(worker.failure_told());
}

TEST(WorkerLifecycleTest, Dying_OnlyAnotherProcessGoesOn) {
  EXPECT_TRUE(After({Move::kSayFailing, Move::kDie, Move::kGoOn}).dying());
  EXPECT_TRUE(After({Move::kSayFailing, Move::kDie, Move::kReplace}).running());
}

TEST(WorkerLifecycleTest, WhatItSaid_IsRememberedUntilItIsGone) {
  const WorkerLifecycle worker = After({Move::kSayFailing, Move::kStop, Move::kEndBadly});
  EXPECT_TRUE(worker.failure_told());
}

TEST(WorkerLifecycleTest, Blame_CountsOnceBeforeItsEnd) {
  WorkerLifecycle worker = After({Move::kStop, Move::kBlame});
  EXPECT_TRUE(worker.failure_counted());
  EXPECT_TRUE(worker.Make(Move::kEndWell));
  EXPECT_FALSE(worker.failure_counted());
  EXPECT_TRUE(worker.Make(Move::kBlame));
  EXPECT_EQ(worker.life(), Life::kFailed);
}

TEST(WorkerLifecycleTest, ReleasedAndStopped_InAnyOrder) {
  for (const auto& moves :
       {std::vector{Move::kRelease, Move::kStop}, std::vector{Move::kStop, Move::kRelease}}) {
    const WorkerLifecycle worker = After(moves);
    EXPECT_EQ(worker.life(), Life::kReleasedAndStopped);
    EXPECT_TRUE(worker.released() && worker.stopped());
  }
}

TEST(WorkerLifecycleTest, Refused_ChangesNothingAndIsRemembered) {
  WorkerLifecycle worker = After({Move::kEnter, Move::kFinish, Move::kEndWell});
  EXPECT_FALSE(worker.Make(Move::kEnter));
  EXPECT_FALSE(worker.Make(Move::kDie));
  EXPECT_TRUE(worker.finished());
  EXPECT_EQ(worker.life(), Life::kLeft);
  EXPECT_EQ(worker.Check(), "move Enter of a worker that is finished and left");
}

TEST(WorkerLifecycleTest, Member_HasToLeaveBeforeItIsStopped) {
  for (const Move move : {Move::kStop, Move::kRelease, Move::kSayFailing, Move::kBlame}) {
    WorkerLifecycle worker = After({Move::kEnter});
    EXPECT_FALSE(worker.Make(move)) << NameOf(move);
    EXPECT_TRUE(worker.member());
  }
}

// For all sequences of three moves: a worker that is gone stays gone, only a running worker is in a
// world, and a refused move changes nothing.
TEST(WorkerLifecycleTest, AllShortHistories_KeepTheInvariants) {
  for (int history = 0; history < kMoves * kMoves * kMoves * kMoves; ++history) {
    WorkerLifecycle worker;
    for (int rest = history, i = 0; i < 4; ++i, rest /= kMoves) {
      const WorkerLifecycle before = worker;
      const bool allowed = worker.Make(static_cast<Move>(rest % kMoves));
      ASSERT_FALSE(before.gone() && !worker.gone());
      ASSERT_FALSE(!allowed && (worker.part() != before.part() || worker.life() != before.life()));
      if (!allowed) break;
      ASSERT_EQ(worker.Check(), "");
    }
  }
}

}  // namespace
}  // namespace hvd::rendezvous::lifecycle
