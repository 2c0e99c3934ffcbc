#include "rendezvous/reporting/checkpoint_text.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::reporting {
namespace {

TEST(CheckpointTextTest, NamesTheNewestOneAndHowToGoOn) {
  membership::Membership::View view;
  EXPECT_EQ(LastCheckpointText(view, /*success=*/false), "");
  view.checkpoint_place = "/c";
  EXPECT_EQ(LastCheckpointText(view, /*success=*/false), "no checkpoint was written to /c");
  view.checkpoint = 12;
  view.checkpoint_place = "/c/checkpoint-12-w1.hvd";
  EXPECT_EQ(LastCheckpointText(view, /*success=*/true),
            "newest checkpoint: commit 12, /c/checkpoint-12-w1.hvd");
  EXPECT_EQ(LastCheckpointText(view, /*success=*/false),
            "newest checkpoint: commit 12, /c/checkpoint-12-w1.hvd")
      << "it may not fit the script";
  view.has_begun = true;
  EXPECT_EQ(LastCheckpointText(view, /*success=*/false),
            "newest checkpoint: commit 12, /c/checkpoint-12-w1.hvd; the same command goes on from "
            "there");
}

TEST(CheckpointTextTest, NamesACommitThatIsLostWithTheJob) {
  membership::Membership::View view;
  view.unsaved_commit = 14;
  view.has_begun = true;
  EXPECT_EQ(LastCheckpointText(view, /*success=*/false), "") << "it was to write none";
  view.checkpoint_place = "/c";
  EXPECT_EQ(LastCheckpointText(view, /*success=*/false),
            "no checkpoint was written to /c; commit 14 is lost: no checkpoint has it");
  view.checkpoint = 12;
  EXPECT_EQ(LastCheckpointText(view, /*success=*/false),
            "newest checkpoint: commit 12, /c; the same command goes on from there; commit 14 is "
            "lost: no checkpoint has it");
  EXPECT_EQ(LastCheckpointText(view, /*success=*/true), "newest checkpoint: commit 12, /c");
}

TEST(CheckpointTextTest, SaysWhyNoneWasWritten) {
  membership::Membership::View view;
  view.checkpoint_place = "/c";
  view.checkpoint_failure = "checkpoint 2 in /c can't be written: No space left on device";
  EXPECT_EQ(CheckpointText(view),
            "no checkpoint was written: checkpoint 2 in /c can't be written: No space left on "
            "device");
  view.checkpoint = 1;
  view.checkpoint_place = "/c/checkpoint-1-w1.hvd";
  EXPECT_EQ(CheckpointText(view),
            "newest checkpoint: commit 1, /c/checkpoint-1-w1.hvd (then: checkpoint 2 in /c can't "
            "be written: No space left on device)");
}

}  // namespace
}  // namespace hvd::rendezvous::reporting
