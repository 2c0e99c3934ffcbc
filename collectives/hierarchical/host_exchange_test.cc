#include "collectives/hierarchical/host_exchange.h"

#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/conformance/rank_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::hierarchical {
namespace {

using testing::ElementsAre;

constexpr absl::Duration kPatient = absl::Seconds(60);

TEST(HostExchangeTest, AllGather_ShowsTheHostsOwnValues) {
  conformance::KeyExchangeTable table(4);
  conformance::ForEachRank(4, [&](int rank) {
    const std::unique_ptr<KeyExchange> whole = table.ForRank(rank);
    const int first = rank % 2;
    HostExchange exchange(*whole, "key", {first, first + 2});
    const auto values = exchange.AllGather("any", std::to_string(rank), kPatient);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT(*values, ElementsAre(std::to_string(first), std::to_string(first + 2)));
    EXPECT_EQ(exchange.Finish(kPatient), absl::OkStatus());
    EXPECT_TRUE(absl::IsInternal(exchange.AllGather("more", "", kPatient).status()));
  });
  EXPECT_EQ(table.calls(), 4);
}

// Rank 2 is alone on its host, so it does not call AllGather.
TEST(HostExchangeTest, Finish_TakesPartInTheRound) {
  conformance::KeyExchangeTable table(3);
  conformance::ForEachRank(3, [&](int rank) {
    const std::unique_ptr<KeyExchange> whole = table.ForRank(rank);
    HostExchange exchange(*whole, "key", rank == 2 ? std::vector<int>{2} : std::vector<int>{0, 1});
    if (rank == 2) {
      EXPECT_EQ(exchange.Finish(kPatient), absl::OkStatus());
    } else {
      EXPECT_TRUE(exchange.AllGather("any", "x", kPatient).ok());
    }
  });
}

}  // namespace
}  // namespace hvd::collectives::hierarchical
