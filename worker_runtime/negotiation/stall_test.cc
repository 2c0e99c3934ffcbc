#include "worker_runtime/negotiation/stall.h"

#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd {
namespace {

const absl::Time kStart = absl::UnixEpoch();
absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

StallOptions WarnAfter60() {
  StallOptions options;
  options.warn_after = absl::Seconds(60);
  return options;
}

TEST(StallTest, Look_AfterTheWarningTime_SaysWhoIsMissing) {
  Readiness table(3);
  ASSERT_TRUE(table.Add(0, {Sig("grad")}, At(0)).ok());
  ASSERT_TRUE(table.Add(2, {Sig("grad")}, At(1)).ok());
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  ASSERT_EQ(inspector.next_look(), At(60));
  const StallReport report = inspector.Look(table, At(60));
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0],
            "allreduce 'grad' was submitted by ranks 0 and 2 but not by rank 1 for 60 s");
  EXPECT_EQ(report.give_up, "");
  EXPECT_EQ(inspector.next_look(), At(120));
}

TEST(StallTest, Look_NothingWaits_PlansNothing) {
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  EXPECT_TRUE(inspector.Look(Readiness(2), At(60)).warnings.empty());
  EXPECT_EQ(inspector.next_look(), absl::InfiniteFuture());
}

TEST(StallTest, Look_YoungTensor_IsLookedAtWhenItsTimeHasCome) {
  Readiness table(2);
  StallInspector inspector(WarnAfter60());
  inspector.Watch(At(0));
  ASSERT_TRUE(table.Add(0, {Sig("late")}, At(50)).ok());
  EXPECT_TRUE(inspector.Look(table, At(60)).warnings.empty());
  EXPECT_EQ(inspector.next_look(), At(110));
  EXPECT_EQ(inspector.Look(table, At(110)).warnings.size(), 1u);
}

TEST(StallTest, Look_AfterTheLimit_GivesUp) {
  StallOptions options = WarnAfter60();
  options.give_up_after = absl::Seconds(90);
  Readiness table(2);
  ASSERT_TRUE(table.Add(1, {Sig("grad")}, At(0)).ok());
  StallInspector inspector(options);
  inspector.Watch(At(0));
  EXPECT_EQ(inspector.Look(table, At(60)).give_up, "");
  EXPECT_EQ(inspector.next_look(), At(90));
  EXPECT_EQ(inspector.Look(table, At(90)).give_up,
            "allreduce 'grad' was submitted by rank 1 but not by rank 0 for 90 s");
}

TEST(StallTest, Watch_WithoutLimits_PlansNothing) {
  for (absl::Duration never : {absl::InfiniteDuration(), absl::ZeroDuration()}) {
    StallInspector inspector({never, never});
    inspector.Watch(At(0));
    EXPECT_EQ(inspector.next_look(), absl::InfiniteFuture());
  }
}

}  // namespace
}  // namespace hvd
