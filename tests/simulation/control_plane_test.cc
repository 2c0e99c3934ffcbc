// Simulated jobs; see control_plane.h for the properties that are checked. To repeat one with its
// trace:
//   bazel run -c opt //tests/simulation:simulate -- --seed N --trace
#include "tests/simulation/control_plane.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace hvd {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kJobs = 4000;  // each takes 20 times as long
#else
constexpr uint64_t kJobs = 20000;
#endif

TEST(ControlPlaneTest, SimulatedJobs_KeepTheInvariants) {
  ControlPlane::Tally total;
  for (uint64_t seed = 1; seed <= kJobs; ++seed) {
    ControlPlane plane(seed, /*traced=*/false);
    EXPECT_EQ(plane.Run(), "") << "seed " << seed;
    if (HasFailure()) return;
    total.Add(plane.tally());
  }
  // Guards against checks that never had anything to check.
  EXPECT_GT(total.successes, kJobs / 2) << total.ToText();
  EXPECT_GT(total.runs - total.successes, kJobs / 100) << total.ToText();
  EXPECT_GT(total.worlds, kJobs * 3 / 2) << total.ToText();
  EXPECT_GT(total.planned_changes, kJobs / 5) << total.ToText();
  EXPECT_GT(total.rollbacks, kJobs / 2) << total.ToText();
  EXPECT_GT(total.restarts_of_daemon, kJobs / 5) << total.ToText();
  EXPECT_GT(total.released, kJobs / 20) << total.ToText();
  EXPECT_GT(total.evicted, kJobs / 100) << total.ToText();
  EXPECT_GT(total.crowded, kJobs / 5) << total.ToText();
  EXPECT_GT(total.shared, kJobs / 5) << total.ToText();
  EXPECT_GT(total.held, kJobs / 40) << total.ToText();
  EXPECT_GT(total.copies_used, kJobs / 40) << total.ToText();
}

TEST(ControlPlaneTest, SameSeed_SameRun) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ControlPlane once(seed, /*traced=*/true);
    ControlPlane again(seed, /*traced=*/true);
    EXPECT_EQ(once.Run(), again.Run());
    EXPECT_EQ(once.trace(), again.trace());
  }
}

}  // namespace
}  // namespace hvd
