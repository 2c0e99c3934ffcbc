// Random schedules; see random_schedule.h for the properties that are checked.
#include <cstdint>

#include "gtest/gtest.h"
#include "tests/simulation/random_schedule.h"

namespace hvd {
namespace {

constexpr uint32_t kSchedules = 4000;

TEST(MembershipPropertyTest, RandomSchedules_KeepTheInvariants) {
  int successes = 0;
  int failures_of_ranks = 0;
  int failures_of_hosts = 0;
  int consequences = 0;
  int later_epochs = 0;
  for (uint32_t seed = 1; seed <= kSchedules; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomSchedule schedule(seed);
    schedule.Run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    successes += schedule.verdict()->success ? 1 : 0;
    failures_of_ranks += schedule.verdict()->rank >= 0 ? 1 : 0;
    failures_of_hosts += schedule.verdict()->rank < 0 && !schedule.verdict()->host.empty() ? 1 : 0;
    consequences += schedule.verdict()->consequences;
    later_epochs += schedule.epochs() > 1 ? 1 : 0;
  }
  // Guards against checks that never had anything to check.
  EXPECT_GT(successes, 100);
  EXPECT_GT(failures_of_ranks, 1000);
  EXPECT_GT(failures_of_hosts, 100);
  EXPECT_GT(consequences, 100);
  EXPECT_GT(later_epochs, 200);
}

}  // namespace
}  // namespace hvd
