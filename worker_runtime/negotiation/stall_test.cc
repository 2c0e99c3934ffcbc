#include "worker_runtime/negotiation/stall.h"

#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

const absl::Time kStart = absl::UnixEpoch();
absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

settings::EngineEnv WarnAfter60() {
  settings::EngineEnv settings;
  settings.stall_warning_time = absl::Seconds(60);
  return settings;
}

// Returns all reports until `end`, one line each, with its time.
std::string ReportUntil(StallInspector& inspector, const Readiness& table, absl::Time end) {
  std::string told;
  while (inspector.next_look() <= end) {
    const absl::Time now = inspector.next_look();
    const StallReport report = inspector.Look(table, now);
    if (report.waiting.empty()) continue;
    told += absl::FormatDuration(now - kStart) + ": " + StallText(report) +
            (report.give_up ? " - given up\n" : "\n");
  }
  return told;
}

TEST(StallTest, Look_AfterTheWarningTime_NamesTheMissingRanks) {
  Readiness table(3);
  ASSERT_TRUE(table.Add(0, {Sig("grad")}, At(0)).ok());
  ASSERT_TRUE(table.Add(2, {Sig("grad")}, At(1)).ok());
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  ASSERT_EQ(inspector.next_look(), At(60));
  const StallReport report = inspector.Look(table, At(60));
  EXPECT_EQ(StallText(report), "Stalled for 1m in allreduce 'grad', waiting for rank 1");
  ASSERT_EQ(report.waiting.size(), 1u);
  EXPECT_EQ(report.waiting[0].missing, std::vector<int>{1});
  EXPECT_FALSE(report.give_up);
}

TEST(StallTest, Look_LastingStall_IsReportedOnceAndAgainMuchLater) {
  Readiness table(3);
  ASSERT_TRUE(table.Add(0, {Sig("a")}, At(0)).ok());
  ASSERT_TRUE(table.Add(2, {Sig("a")}, At(0)).ok());
  for (const int rank : {0, 2}) ASSERT_TRUE(table.Add(rank, {Sig("b")}, At(50)).ok());
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  EXPECT_EQ(ReportUntil(inspector, table, At(299)),
            "1m: Stalled for 1m in allreduce 'a', waiting for rank 1\n");
  EXPECT_EQ(ReportUntil(inspector, table, At(1499)),
            "5m: Stalled for 5m in allreduce 'a' and 1 more, waiting for rank 1\n");
}

TEST(StallTest, Look_OtherRankIsMissing_IsReportedInItsTime) {
  Readiness table(3);
  for (const int rank : {0, 2}) ASSERT_TRUE(table.Add(rank, {Sig("a")}, At(0)).ok());
  ASSERT_TRUE(table.Add(0, {Sig("b")}, At(50)).ok());
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  EXPECT_EQ(ReportUntil(inspector, table, At(299)),
            "1m: Stalled for 1m in allreduce 'a', waiting for rank 1\n"
            "1m50s: Stalled for 1m50s in allreduce 'a', waiting for rank 1; in allreduce 'b', "
            "waiting for ranks 1 and 2\n");
}

TEST(StallTest, Look_NextStallOfTheSameRank_IsReportedInItsTime) {
  StallInspector inspector(WarnAfter60());
  Readiness table(2);
  ASSERT_TRUE(table.Add(0, {Sig("a")}, At(0)).ok());
  inspector.Watch(At(0));
  EXPECT_NE(ReportUntil(inspector, table, At(70)), "");
  ASSERT_TRUE(table.Add(1, {Sig("a")}, At(70)).ok());
  EXPECT_EQ(table.TakeReady().size(), 1u);
  ASSERT_TRUE(table.Add(0, {Sig("a")}, At(71)).ok());
  inspector.Watch(At(71));
  EXPECT_EQ(ReportUntil(inspector, table, At(200)),
            "2m11s: Stalled for 1m in allreduce 'a', waiting for rank 1\n");
}

TEST(StallTest, Look_NothingWaits_PlansNothing) {
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  EXPECT_TRUE(inspector.Look(Readiness(2), At(60)).waiting.empty());
  EXPECT_EQ(inspector.next_look(), absl::InfiniteFuture());
}

TEST(StallTest, Look_YoungTensor_IsLookedAtWhenItsTimeHasCome) {
  Readiness table(2);
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  ASSERT_TRUE(table.Add(0, {Sig("late")}, At(50)).ok());
  EXPECT_TRUE(inspector.Look(table, At(60)).waiting.empty());
  EXPECT_EQ(inspector.next_look(), At(110));
  EXPECT_EQ(inspector.Look(table, At(110)).waiting.size(), 1u);
}

TEST(StallTest, Look_AfterTheLimit_GivesUpOnce) {
  settings::EngineEnv settings = WarnAfter60();
  settings.stall_shutdown_time = absl::Seconds(90);
  Readiness table(2);
  ASSERT_TRUE(table.Add(1, {Sig("grad")}, At(0)).ok());
  ASSERT_TRUE(table.Add(0, {Sig("young")}, At(50)).ok());
  StallInspector inspector(settings);
  inspector.Watch(At(0));
  EXPECT_EQ(ReportUntil(inspector, table, At(10000)),
            "1m: Stalled for 1m in allreduce 'grad', waiting for rank 0\n"
            "1m30s: Stalled for 1m30s in allreduce 'grad', waiting for rank 0 - given up\n");
  inspector.Watch(At(10000));
  EXPECT_EQ(inspector.next_look(), absl::InfiniteFuture());
}

TEST(StallTest, Watch_WithoutLimits_PlansNothing) {
  for (absl::Duration never : {absl::InfiniteDuration(), absl::ZeroDuration()}) {
    settings::EngineEnv settings;
    settings.stall_warning_time = settings.stall_shutdown_time = never;
    StallInspector inspector(settings);
    inspector.Watch(At(0));
    EXPECT_EQ(inspector.next_look(), absl::InfiniteFuture());
  }
}

TEST(StallTest, StallCheckOff_GivesUpWithoutAWarning) {
  settings::EngineEnv settings = WarnAfter60();
  settings.stall_check = false;
  settings.stall_shutdown_time = absl::Seconds(90);
  Readiness table(2);
  ASSERT_TRUE(table.Add(1, {Sig("grad")}, At(0)).ok());
  StallInspector inspector(settings);
  inspector.Watch(At(0));
  EXPECT_EQ(ReportUntil(inspector, table, At(10000)),
            "1m30s: Stalled for 1m30s in allreduce 'grad', waiting for rank 0 - given up\n");
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
