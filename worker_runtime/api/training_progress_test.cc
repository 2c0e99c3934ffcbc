#include "worker_runtime/api/training_progress.h"

#include "gtest/gtest.h"

namespace hvd::worker_runtime::api {
namespace {

TEST(TrainingProgressTest, TakeWord_TellsOfTheWorldThatWasLeft_Once) {
  TrainingProgress progress;
  progress.BeginTraining();
  progress.NoteWork();
  progress.SetCommit(7);
  progress.CountStep();
  progress.CountStep();
  progress.NoteError("out of memory", true);
  progress.NoteUnreached(3);
  const auto word = progress.TakeWord();
  EXPECT_EQ(word.commit(), 7u);
  EXPECT_TRUE(word.worked());
  EXPECT_EQ(word.lost_steps(), 2u);
  EXPECT_EQ(word.left_for(), "out of memory");
  EXPECT_TRUE(word.caused_by_peer());
  EXPECT_EQ(word.unreached(), 3);
  const auto next = progress.TakeWord();
  EXPECT_EQ(next.commit(), 7u);
  EXPECT_FALSE(next.worked());
  EXPECT_EQ(next.lost_steps(), 0u);
  EXPECT_EQ(next.lost_time_ms(), 0u);
  EXPECT_EQ(next.left_for(), "");
  EXPECT_FALSE(next.caused_by_peer());
  EXPECT_FALSE(next.has_unreached());
}

TEST(TrainingProgressTest, ACommit_LosesNoStepsBeforeIt) {
  TrainingProgress progress;
  progress.BeginTraining();
  progress.CountStep();
  progress.SetCommit(0);  // there is none any more
  EXPECT_EQ(progress.TakeWord().lost_steps(), 1u);
  progress.CountStep();
  progress.SetCommit(1);
  EXPECT_EQ(progress.TakeWord().lost_steps(), 0u);
}

TEST(TrainingProgressTest, BeginTraining_ForgetsWorkAndStepsBeforeIt) {
  TrainingProgress progress;
  progress.NoteWork();
  progress.CountStep();
  progress.BeginTraining();
  const auto word = progress.TakeWord();
  EXPECT_FALSE(word.worked());
  EXPECT_EQ(word.lost_steps(), 0u);
}

TEST(TrainingProgressTest, ForgetWork_KeepsTheRest) {
  TrainingProgress progress;
  progress.BeginTraining();
  progress.NoteWork();
  progress.CountStep();
  progress.ForgetWork();
  const auto word = progress.TakeWord();
  EXPECT_FALSE(word.worked());
  EXPECT_EQ(word.lost_steps(), 1u);
}

TEST(TrainingProgressTest, Restore_IsACommitSinceWhichNothingWasDone) {
  TrainingProgress progress;
  progress.Restore(3);
  const auto word = progress.TakeWord();
  EXPECT_EQ(word.commit(), 3u);
  EXPECT_EQ(word.lost_time_ms(), 0u);
}

}  // namespace
}  // namespace hvd::worker_runtime::api
