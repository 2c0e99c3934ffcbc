// Simulated jobs; see control_plane.h for the properties that are checked. To repeat one with its
// trace:
//   bazel run -c opt //tests/simulation:simulate -- --seed N --trace
#include "tests/simulation/control_plane.h"

#include <cstdint>
#include <string>

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
    std::string trace;
    EXPECT_EQ(RunWithSuccessors(seed, /*traced=*/false, &total, &trace), "") << "seed " << seed;
    if (HasFailure()) return;
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
  EXPECT_GT(total.checkpoints, kJobs) << total.ToText();
  EXPECT_GT(total.checkpoints_used, kJobs / 80) << total.ToText();
  EXPECT_GT(total.takeovers, kJobs / 20) << total.ToText();
  EXPECT_GT(total.lost, kJobs / 80) << total.ToText();
  EXPECT_GT(total.went_on, kJobs / 400) << total.ToText();
  EXPECT_GT(total.closed_ways, kJobs / 40) << total.ToText();
  EXPECT_GT(total.rests, kJobs / 400) << total.ToText();
  EXPECT_GT(total.left_commits, kJobs / 4000) << total.ToText();
}

TEST(ControlPlaneTest, SameSeed_SameRun) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ControlPlane::Tally tally;
    std::string once, again;
    EXPECT_EQ(RunWithSuccessors(seed, /*traced=*/true, &tally, &once),
              RunWithSuccessors(seed, /*traced=*/true, &tally, &again));
    EXPECT_EQ(once, again);
  }
}

}  // namespace
}  // namespace hvd
