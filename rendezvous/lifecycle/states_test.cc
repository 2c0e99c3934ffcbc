#include "rendezvous/lifecycle/states.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::lifecycle {
namespace {

using ::testing::ElementsAre;

// Tools outside read these words: scripts, alerts on metrics.
TEST(StatesTest, StateName_IsWhatToolsRead) {
  std::vector<absl::string_view> names;
  for (const JobState state : {JobState::kForming, JobState::kRunning, JobState::kResetting,
                               JobState::kDone, JobState::kFailed}) {
    names.push_back(StateName(state));
  }
  EXPECT_THAT(names, ElementsAre("forming", "running", "resetting", "done", "failed"));
  names.clear();
  for (const WorkerState state :
       {WorkerState::kStarting, WorkerState::kJoining, WorkerState::kRunning, WorkerState::kLeaving,
        WorkerState::kFinished, WorkerState::kFailed}) {
    names.push_back(StateName(state));
  }
  EXPECT_THAT(names,
              ElementsAre("starting", "joining", "running", "leaving", "finished", "failed"));
}

TEST(StatesTest, Job_WaitsBeforeAWorld_AndIsOverAfterTheLast) {
  EXPECT_TRUE(IsWaiting(JobState::kForming));
  EXPECT_FALSE(IsWaiting(JobState::kRunning));
  EXPECT_TRUE(IsWaiting(JobState::kResetting));
  EXPECT_FALSE(IsOver(JobState::kResetting));
  EXPECT_TRUE(IsOver(JobState::kDone));
  EXPECT_TRUE(IsOver(JobState::kFailed));
}

}  // namespace
}  // namespace hvd::rendezvous::lifecycle
