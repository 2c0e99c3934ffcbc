#include "launcher/discovery/empty_list_filter.h"

#include "gtest/gtest.h"

namespace hvd::launcher::discovery {
namespace {

using Hosts = std::vector<rendezvous::membership::HostSlots>;

class EmptyListFilterTest : public testing::Test {
 protected:
  bool Believed(const Hosts& hosts) {
    const absl::StatusOr<Hosts> result = lists_.Check(hosts);
    EXPECT_EQ(result.value_or(hosts).size(), hosts.size());
    return result.ok();
  }

  EmptyListFilter lists_{"the script ./hosts.sh"};
  const Hosts some_ = {{"a", 1}};
};

TEST_F(EmptyListFilterTest, AtTheStart_Counts) {
  EXPECT_TRUE(Believed({}));
  EXPECT_TRUE(Believed({}));
}

TEST_F(EmptyListFilterTest, AfterHosts_CountsTheTenthTime_AndFromThenOn) {
  EXPECT_TRUE(Believed(some_));
  for (int i = 1; i < EmptyListFilter::kBelieved; ++i) EXPECT_FALSE(Believed({})) << i;
  EXPECT_TRUE(Believed({}));
  EXPECT_TRUE(Believed({}));
  EXPECT_TRUE(Believed(some_));
  EXPECT_FALSE(Believed({}));
}

TEST_F(EmptyListFilterTest, HostsOrAFailureBetween_TheCountBeginsAgain) {
  Believed(some_);
  for (int i = 1; i < EmptyListFilter::kBelieved; ++i) EXPECT_FALSE(Believed({}));
  EXPECT_TRUE(Believed(some_));
  for (int i = 1; i < EmptyListFilter::kBelieved; ++i) EXPECT_FALSE(Believed({}));
  EXPECT_EQ(lists_.Check(absl::InternalError("x")).status(), absl::InternalError("x"));
  EXPECT_FALSE(Believed({}));
}

TEST_F(EmptyListFilterTest, NamesTheSourceAndTheConsequence) {
  Believed(some_);
  const absl::Status status = lists_.Check(Hosts()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "the script ./hosts.sh lists no host at all; this is ignored until "
            "it has happened 10 times in a row");
}

}  // namespace
}  // namespace hvd::launcher::discovery
