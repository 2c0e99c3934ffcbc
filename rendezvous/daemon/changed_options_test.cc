#include "rendezvous/daemon/changed_options.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::daemon {
namespace {

using Names = std::vector<std::string>;

policy::JobSpec Elastic() {
  policy::JobSpec spec;
  spec.min_workers = 1;
  spec.start_workers = 2;
  spec.max_workers = 4;
  spec.elastic.emplace();
  return spec;
}

TEST(ChangedOptionsTest, Same_None) {
  EXPECT_EQ(ChangedOptions({}, {}), Names());
  EXPECT_EQ(ChangedOptions(Elastic(), Elastic()), Names());
}

TEST(ChangedOptionsTest, EachIsNamed) {
  policy::JobSpec now = Elastic();
  now.min_workers = 2;
  now.start_workers = 3;
  now.max_workers = 8;
  now.elastic->budget.failures = 7;
  now.elastic->reset_limit = 0;
  now.elastic->cooldown.emplace();
  now.reattach_timeout = absl::Seconds(9);
  now.expected_hosts = {{"a", 3, ""}};
  EXPECT_EQ(ChangedOptions(Elastic(), now),
            (Names{"--np", "--min-np", "--max-np", "--max-failures", "--reset-limit",
                   "--blacklist-cooldown-range", "--hosts", "--reattach-timeout"}));
}

TEST(ChangedOptionsTest, ElasticAndNot_SaysSo) {
  policy::JobSpec fixed;
  fixed.min_workers = fixed.max_workers = 2;
  EXPECT_EQ(ChangedOptions(fixed, Elastic()),
            Names{"--min-np or --max-np (only one of the two jobs is elastic)"});
}

}  // namespace
}  // namespace hvd::rendezvous::daemon
