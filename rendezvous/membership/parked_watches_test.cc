#include "rendezvous/membership/parked_watches.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

WatchRequested Watch(uint64_t call, uint64_t worker, bool knows = false) {
  return {CallId(call), {WorkerId(worker), Incarnation(1)}, Epoch(1), knows};
}

std::vector<uint64_t> CallsOf(const std::vector<WatchRequested>& watches) {
  std::vector<uint64_t> calls;
  for (const WatchRequested& watch : watches) calls.push_back(watch.call.value());
  return calls;
}

class ParkedWatchesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const WatchRequested& watch :
         {Watch(4, 1), Watch(2, 2, true), Watch(3, 1, true), Watch(5, 3)}) {
      watches_.Add(watch);
    }
  }
  ParkedWatches watches_;
};

TEST_F(ParkedWatchesTest, Take_ACallOnce) {
  const auto taken = watches_.Take(CallId(3));
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->worker.id, WorkerId(1));
  EXPECT_FALSE(watches_.Take(CallId(3)).has_value());
  EXPECT_EQ(CallsOf(watches_.TakeOf(WorkerId(1))), std::vector<uint64_t>({4}));
}

TEST_F(ParkedWatchesTest, TakeOf_AllOfAWorker) {
  EXPECT_EQ(CallsOf(watches_.TakeOf(WorkerId(1))), std::vector<uint64_t>({3, 4}));
  EXPECT_EQ(CallsOf(watches_.TakeAll()), std::vector<uint64_t>({2, 5}));
  EXPECT_TRUE(watches_.TakeOf(WorkerId(2)).empty());
}

TEST_F(ParkedWatchesTest, TooManyOfAWorker_TheOldestGoes) {
  for (uint64_t call = 100; call < 100 + ParkedWatches::kMost - 2; ++call) {
    EXPECT_FALSE(watches_.Add(Watch(call, 1)).has_value());
  }
  const auto gone = watches_.Add(Watch(1000, 1));
  ASSERT_TRUE(gone.has_value());
  EXPECT_EQ(gone->call, CallId(3));
  EXPECT_FALSE(watches_.Take(CallId(3)).has_value());
  EXPECT_EQ(watches_.TakeOf(WorkerId(1)).size(), ParkedWatches::kMost);
  EXPECT_EQ(watches_.TakeAll().size(), 2u);
}

TEST_F(ParkedWatchesTest, TakeUnaware_LeavesThoseThatKnow) {
  EXPECT_EQ(CallsOf(watches_.TakeUnaware()), std::vector<uint64_t>({4, 5}));
  EXPECT_EQ(CallsOf(watches_.TakeAll()), std::vector<uint64_t>({2, 3}));
}

}  // namespace
}  // namespace hvd::rendezvous::membership
