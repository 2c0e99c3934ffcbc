#include "worker_runtime/engine/engine.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/engine/engine_test_util.h"

namespace hvd::worker_runtime::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using Results = std::vector<TensorResult>;

// Returns a result's elements as floats.
std::vector<float> Floats(const TensorResult& result) {
  const float* data = static_cast<const float*>(result.data);
  return std::vector<float>(data, data + negotiation::ElementCount(result.shape));
}

TensorRequest OnFloats(negotiation::OpKind op, const std::string& name,
                       const std::vector<float>& input, std::vector<int64_t> shape) {
  TensorRequest request = Bare(name, op);
  request.input = input.data();
  request.shape = std::move(shape);
  return request;
}

class EngineTest : public testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }
  float SumOfRanks() const { return static_cast<float>(size() * (size() - 1) / 2); }
};
INSTANTIATE_TEST_SUITE_P(Sizes, EngineTest, testing::Values(1, 2, 3, 4));

TEST_P(EngineTest, AllReduce_RandomOrders_GiveTheSum) {
  constexpr int kTensors = 40;
  TestWorld world(size());
  for (int step = 0; step < 3; ++step) {
    world.OnEach([&](int rank, Engine& engine) {
      std::vector<std::vector<float>> data(kTensors);
      std::vector<int> order(kTensors);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), std::mt19937(rank * 100 + step));
      std::vector<Engine::Handle> handles;
      for (int i : order) {
        data[i].assign(i, static_cast<float>(rank + i));
        handles.push_back(*engine.Submit({AllReduceOf(absl::StrCat("t", i), data[i])}));
      }
      for (const Engine::Handle& handle : handles) EXPECT_EQ(engine.Wait(handle), absl::OkStatus());
      for (int i = 0; i < kTensors; ++i) {
        EXPECT_EQ(data[i], std::vector<float>(i, SumOfRanks() + static_cast<float>(size() * i)));
      }
    });
  }
}

// A caller that waits at once and runs the rounds itself, while another operation is in flight.
TEST_P(EngineTest, Submit_CallerWaitsAtOnce_Completes) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<float> other(3, 1);
    const auto handle = engine.Submit({AllReduceOf("other", other)});
    ASSERT_TRUE(handle.ok());
    for (int step = 0; step < 100; ++step) {
      std::vector<float> data{static_cast<float>(rank)};
      EXPECT_EQ(RunAtOnce(engine, AllReduceOf("x", data)), absl::OkStatus());
      EXPECT_EQ(data[0], SumOfRanks());
    }
    EXPECT_EQ(engine.Wait(*handle), absl::OkStatus());
  });
}

// Until now callers have run the engine's rounds; from here on none calls.
TEST_P(EngineTest, PeerLeaves_AfterCallersHaveWaited_IsHeardByAll) {
  absl::BlockingCounter left(size());
  EngineOptions options;
  options.on_end = [&](const absl::Status&, bool in_good_order, std::optional<int>) {
    EXPECT_TRUE(in_good_order);
    left.DecrementCount();
  };
  TestWorld world(size(), options);
  world.OnEach([&](int rank, Engine& engine) {
    for (int step = 0; step < 100; ++step) {
      EXPECT_EQ(RunAtOnce(engine, Bare("x", negotiation::OpKind::kBarrier)), absl::OkStatus());
    }
  });
  world.engine(size() - 1).Shutdown();
  left.Wait();
}

TEST_P(EngineTest, AllReduce_LargeTensor_IsNotCopiedButRight) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    const std::vector<float> input(1 << 19, static_cast<float>(rank));
    std::vector<float> output(input.size());
    TensorRequest request = AllReduceOf("large", output);
    request.input = input.data();
    EXPECT_EQ(RunOn(engine, {request}), absl::OkStatus());
    EXPECT_EQ(output, std::vector<float>(input.size(), SumOfRanks()));
    EXPECT_EQ(input.front(), static_cast<float>(rank));
  });
}

TEST_P(EngineTest, AllReduce_AverageAndFactors_AreApplied) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<float> average{1, 2}, scaled{1, 2};
    std::vector<int32_t> integers{rank == 0 ? 5 : 6, -1};
    TensorRequest factors = AllReduceOf("scaled", scaled);
    factors.prescale = 0.5;
    factors.postscale = 4;
    EXPECT_EQ(
        RunOn(engine, {AllReduceOf("average", average, negotiation::Reduction::kAverage), factors,
                       AllReduceOf("integers", integers, collectives::DataType::kInt32,
                                   negotiation::Reduction::kAverage)}),
        absl::OkStatus());
    EXPECT_THAT(average, ElementsAre(1, 2));
    EXPECT_THAT(scaled, ElementsAre(2 * size(), 4 * size()));
    EXPECT_THAT(integers, ElementsAre((5 + 6 * (size() - 1)) / size(), -1));
  });
}

TEST_P(EngineTest, AllReduce_MinMaxProduct_AreWhatTheySay) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    const auto mine = static_cast<float>(rank + 1), last = static_cast<float>(size());
    std::vector<float> min{mine}, max{mine}, product{2};
    EXPECT_EQ(RunOn(engine, {AllReduceOf("min", min, negotiation::Reduction::kMin),
                             AllReduceOf("max", max, negotiation::Reduction::kMax),
                             AllReduceOf("product", product, negotiation::Reduction::kProduct)}),
              absl::OkStatus());
    EXPECT_THAT(min, ElementsAre(1));
    EXPECT_THAT(max, ElementsAre(last));
    EXPECT_THAT(product, ElementsAre(static_cast<float>(1 << size())));
  });
}

TEST_P(EngineTest, AllReduce_AdasumOfEqualTensors_IsTheAverage) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    const std::vector<float> input{3, 4};
    std::vector<float> output{0, 0}, after{1};
    TensorRequest request = AllReduceOf("adasum", output, negotiation::Reduction::kAdasum);
    request.input = input.data();
    EXPECT_EQ(RunOn(engine, {request}), absl::OkStatus());
    EXPECT_THAT(output, ElementsAre(FloatEq(3), FloatEq(4)));
    EXPECT_EQ(RunOn(engine, {AllReduceOf("after", after)}), absl::OkStatus());
  });
}

TEST_P(EngineTest, AllGather_RowsDifferAndMayBeNone) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    const std::vector<float> rows(rank * 2, static_cast<float>(rank));
    EXPECT_EQ(RunAndCheck(engine, {OnFloats(negotiation::OpKind::kAllGather, "g", rows, {rank, 2})},
                          [&](const Results& results) {
                            EXPECT_THAT(results[0].shape, ElementsAre(SumOfRanks(), 2));
                            std::vector<float> want;
                            for (int r = 0; r < size(); ++r) {
                              want.insert(want.end(), r * 2, static_cast<float>(r));
                            }
                            EXPECT_EQ(Floats(results[0]), want);
                          }),
              absl::OkStatus());
  });
}

TEST_P(EngineTest, Broadcast_EveryRootReachesAll) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    for (int root = 0; root < size(); ++root) {
      std::vector<float> data(3, static_cast<float>(rank));
      TensorRequest request = Bare(absl::StrCat("b", root), negotiation::OpKind::kBroadcast);
      request.shape = {3};
      request.output = data.data();
      request.root_rank = root;
      EXPECT_EQ(RunOn(engine, {request}), absl::OkStatus());
      EXPECT_EQ(data, std::vector<float>(3, static_cast<float>(root)));
    }
  });
}

TEST_P(EngineTest, AllToAll_UnevenSplits_SendEachItsRows) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    // Rank r sends r rows to everyone and keeps one more row to itself.
    const std::vector<float> rows(rank * size() + 1, static_cast<float>(rank));
    TensorRequest request =
        OnFloats(negotiation::OpKind::kAllToAll, "t", rows, {rank * size() + 1});
    request.splits.assign(size(), rank);
    EXPECT_EQ(RunAndCheck(engine, {request},
                          [&](const Results& results) {
                            std::vector<float> want;
                            std::vector<int32_t> splits;
                            for (int r = 0; r < size(); ++r) {
                              want.insert(want.end(), r, static_cast<float>(r));
                              splits.push_back(r);
                            }
                            EXPECT_EQ(Floats(results[0]), want);
                            EXPECT_EQ(results[0].received_splits, splits);
                          }),
              absl::OkStatus());
  });
}

TEST_P(EngineTest, ReduceScatter_FirstRanksGetOneRowMore) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    const int rows = size() + 1;
    std::vector<float> data(rows);
    std::iota(data.begin(), data.end(), 0.0f);
    TensorRequest request = OnFloats(negotiation::OpKind::kReduceScatter, "r", data, {rows, 1});
    request.reduction = negotiation::Reduction::kAverage;
    request.prescale = 2;
    EXPECT_EQ(RunAndCheck(engine, {request},
                          [&](const Results& results) {
                            std::vector<float> want;
                            const int first = rank == 0 ? 0 : rank + 1;
                            const int last = rank + 1;
                            for (int i = first; i <= last; ++i) {
                              want.push_back(static_cast<float>(2 * i));
                            }
                            EXPECT_EQ(Floats(results[0]), want);
                          }),
              absl::OkStatus());
  });
}

TEST_P(EngineTest, Group_MixedTypesAndOrders_IsOneHandle) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<float> a(10, 1), empty;
    std::vector<double> b(5, 2);
    std::vector<TensorRequest> group{AllReduceOf("g.a", a),
                                     AllReduceOf("g.b", b, collectives::DataType::kFloat64),
                                     AllReduceOf("g.empty", empty)};
    if (rank % 2 == 1) std::reverse(group.begin(), group.end());
    EXPECT_EQ(RunOn(engine, group), absl::OkStatus());
    EXPECT_EQ(a, std::vector<float>(10, static_cast<float>(size())));
    EXPECT_EQ(b, std::vector<double>(5, 2.0 * size()));
  });
}

TEST_P(EngineTest, NamesOfManyKinds_OverASmallCache_AllWork) {
  EngineOptions options;
  options.settings.cache_capacity = 3;
  options.settings.fusion_threshold_bytes = 64;
  TestWorld world(size(), options);
  world.OnEach([&](int rank, Engine& engine) {
    for (int i = 0; i < 200; ++i) {
      std::vector<float> data(1 + i % 3, 1);
      const std::string name =
          i % 2 == 0 ? absl::StrCat("t", i % 10) : absl::StrCat("allreduce.noname.", i);
      EXPECT_EQ(RunOn(engine, {AllReduceOf(name, data)}), absl::OkStatus());
      EXPECT_EQ(data[0], static_cast<float>(size()));
    }
  });
}

TEST_P(EngineTest, Barrier_NobodyLeavesBeforeAllHaveCome) {
  TestWorld world(size());
  std::atomic<int> come{0};
  world.OnEach([&](int, Engine& engine) {
    ++come;
    EXPECT_EQ(RunOn(engine, {Bare("barrier", negotiation::OpKind::kBarrier)}), absl::OkStatus());
    EXPECT_EQ(come, size());
  });
}

TEST_P(EngineTest, Commit_OneRankKnowsOfAChange_AllRanksLearnItAtTheSameCommit) {
  constexpr int kChangeAt = 3;
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    for (int commit = 0; commit < 6; ++commit) {
      if (commit == kChangeAt && rank == size() - 1) engine.SetWorldChanging();
      EXPECT_EQ(RunAndCheck(engine, {Bare("commit", negotiation::OpKind::kCommit)},
                            [&](const Results& results) {
                              EXPECT_EQ(results[0].world_is_changing, commit >= kChangeAt);
                            }),
                absl::OkStatus());
    }
  });
}

TEST_P(EngineTest, SetWorldChanging_NothingCommits_ChangesNothing) {
  TestWorld world(size());
  world.OnEach([&](int, Engine& engine) {
    engine.SetWorldChanging();
    std::vector<float> data{1};
    EXPECT_EQ(RunOn(engine, {AllReduceOf("sum", data)}), absl::OkStatus());
    EXPECT_THAT(data, ElementsAre(size()));
  });
}

TEST_P(EngineTest, Join_OthersGoOnAndAllLearnTheLast) {
  TestWorld world(size());
  world.OnEach([&](int rank, Engine& engine) {
    // Rank r has r + 1 steps of data.
    for (int step = 0; step <= rank; ++step) {
      std::vector<float> sum{1}, min{5}, average{static_cast<float>(size())};
      EXPECT_EQ(
          RunOn(engine, {AllReduceOf(absl::StrCat("sum", step), sum),
                         AllReduceOf(absl::StrCat("min", step), min, negotiation::Reduction::kMin),
                         AllReduceOf(absl::StrCat("avg", step), average,
                                     negotiation::Reduction::kAverage)}),
          absl::OkStatus());
      EXPECT_THAT(sum, ElementsAre(size() - step));
      EXPECT_THAT(min, ElementsAre(5));
      EXPECT_THAT(average, ElementsAre(size() - step));
    }
    EXPECT_EQ(RunAndCheck(engine, {Bare("join", negotiation::OpKind::kJoin)},
                          [&](const Results& results) {
                            EXPECT_EQ(results[0].last_joined_rank, size() - 1);
                          }),
              absl::OkStatus());
    std::vector<float> after{1};
    EXPECT_EQ(RunOn(engine, {AllReduceOf("after", after)}), absl::OkStatus());
    EXPECT_THAT(after, ElementsAre(size()));
  });
}

TEST(EngineSubmitTest, BadRequest_QueuesNothing) {
  TestWorld world(1);
  Engine& engine = world.engine(0);
  std::vector<float> data{1};
  TensorRequest nameless = AllReduceOf("", data);
  EXPECT_EQ(engine.Submit({AllReduceOf("a", data), nameless}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine.Submit({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunOn(engine, {AllReduceOf("a", data)}), absl::OkStatus());
}

TEST(EngineSubmitTest, SameNameInFlight_IsRefusedUntilItIsDone) {
  TestWorld world(2);
  std::vector<float> data{1}, again{1}, other{1}, peer{1};
  const auto handle = world.engine(0).Submit({AllReduceOf("a", data)});
  ASSERT_TRUE(handle.ok());
  EXPECT_FALSE((*handle)->done.done());
  EXPECT_EQ(
      world.engine(0).Submit({AllReduceOf("b", other), AllReduceOf("a", again)}).status().code(),
      absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(RunOn(world.engine(1), {AllReduceOf("a", peer)}), absl::OkStatus());
  EXPECT_EQ(world.engine(0).Wait(*handle), absl::OkStatus());
  EXPECT_TRUE((*handle)->done.done());
  // "b" was not left behind either.
  world.OnEach([](int, Engine& engine) {
    std::vector<float> a{1}, b{1};
    EXPECT_EQ(RunOn(engine, {AllReduceOf("a", a), AllReduceOf("b", b)}), absl::OkStatus());
  });
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
