#include "worker_runtime/group/store_exchange.h"

#include <string>
#include <thread>  // NOLINT: the ranks
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/group/testing/memory_store.h"

namespace hvd::worker_runtime::group {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kLong = absl::Seconds(60);

// Runs body(exchange, rank) on a thread for each rank.
template <typename Body>
void OnRanks(Store& store, int size, Body body) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      StoreExchange exchange(store, rank, size);
      body(exchange, rank);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(StoreExchangeTest, AllGather_ReturnsAllValuesInTheOrderOfRanks) {
  MemoryStore store;
  OnRanks(store, 3, [](StoreExchange& exchange, int rank) {
    // Values of any bytes, also those that separate values, and none.
    const std::vector<std::string> values = {"1:a", std::string("\0:", 2), ""};
    const auto all = exchange.AllGather("round", values[rank], kLong);
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(*all, ElementsAre(values[0], values[1], values[2]));
  });
}

TEST(StoreExchangeTest, Gather_ReturnsTheValuesAskedFor) {
  MemoryStore store;
  OnRanks(store, 3, [](StoreExchange& exchange, int rank) {
    const auto some =
        exchange.Gather("round", std::string(1, static_cast<char>('a' + rank)), {2, 0}, kLong);
    ASSERT_TRUE(some.ok()) << some.status();
    EXPECT_THAT(some->values, ElementsAre("c", "a"));
    EXPECT_FALSE(some->all_equal);
  });
}

TEST(StoreExchangeTest, Gather_TellsAllRanksThatValuesAreEqual) {
  MemoryStore store;
  OnRanks(store, 3, [](StoreExchange& exchange, int) {
    const auto none = exchange.Gather("round", "same", {}, kLong);
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_TRUE(none->all_equal);
  });
}

TEST(StoreExchangeTest, Gather_RefusesARankThatDoesNotExist) {
  MemoryStore store;
  StoreExchange exchange(store, 0, 1);
  EXPECT_EQ(exchange.Gather("round", "", {1}, kLong).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StoreExchangeTest, MissingRank_IsADeadline) {
  MemoryStore store;
  StoreExchange exchange(store, 0, 2);
  EXPECT_EQ(exchange.AllGather("round", "own", absl::Milliseconds(1)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(StoreExchangeTest, ForeignValue_IsRefused) {
  for (const char* value : {"x", "5:abc", "1:a", "1:a1:b1:c"}) {
    MemoryStore store;
    ASSERT_TRUE(store.Set("round/all", value).ok());
    StoreExchange exchange(store, 1, 2);
    EXPECT_EQ(exchange.AllGather("round", "own", kLong).status().code(),
              absl::StatusCode::kInternal)
        << value;
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::group
