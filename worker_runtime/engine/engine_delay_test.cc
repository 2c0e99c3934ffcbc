// Tests of the delay of new operations, so that more are announced together.
#include <functional>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/engine/engine_test_util.h"

namespace hvd::worker_runtime::engine {
namespace {

using ::testing::ElementsAre;

class EngineDelayTest : public testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }

  // On every rank, some times: submits a tensor, which is kept back, then calls `run` with a
  // request for another one. Both must be done then.
  void ExpectEndOfDelay(const std::function<void(Engine&, TensorRequest)>& run) {
    EngineOptions options;
    options.gather_time = absl::Hours(24);
    TestWorld world(size(), options);
    world.OnEach([&](int, Engine& engine) {
      for (int step = 0; step < 10; ++step) {
        std::vector<float> a{1}, b{2};
        const auto first = engine.Submit({AllReduceOf("a", a)});
        run(engine, AllReduceOf("b", b));
        EXPECT_THAT(b, ElementsAre(2 * size()));
        (*first)->done.Wait();
        EXPECT_EQ((*first)->status, absl::OkStatus());
      }
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Sizes, EngineDelayTest, testing::Values(1, 2, 3, 4));

TEST_P(EngineDelayTest, CycleTime_OnlyDelays) {
  EngineOptions options;
  options.settings.cycle_time = absl::Milliseconds(1);
  TestWorld world(size(), options);
  world.OnEach([&](int, Engine& engine) {
    std::vector<float> a{1}, b{2};
    const auto first = engine.Submit({AllReduceOf("a", a)});
    const auto second = engine.Submit({AllReduceOf("b", b)});
    EXPECT_EQ(engine.Wait(*first), absl::OkStatus());
    EXPECT_EQ(engine.Wait(*second), absl::OkStatus());
    EXPECT_THAT(b, ElementsAre(2 * size()));
  });
}

// A thread that waits has all delayed operations of its rank announced, not only its own.
TEST_P(EngineDelayTest, GatherTime_CallerWaits_EndsAtOnce) {
  ExpectEndOfDelay([](Engine& engine, TensorRequest request) {
    EXPECT_EQ(RunOn(engine, {std::move(request)}), absl::OkStatus());
  });
}

// Also those that were queued before.
TEST_P(EngineDelayTest, GatherTime_CallbackWaits_EndsAtOnce) {
  ExpectEndOfDelay([](Engine& engine, TensorRequest request) {
    Completion called;
    Engine::Handle done;
    EXPECT_EQ(SubmitThen(engine, std::move(request),
                         [&](Engine::Handle handle) {
                           done = std::move(handle);
                           called.Notify();
                         }),
              absl::OkStatus());
    called.Wait();
    EXPECT_TRUE(done->done.done());
    EXPECT_EQ(done->status, absl::OkStatus());
  });
}

TEST_P(EngineDelayTest, GatherTime_PassesThoughNobodyWaits) {
  EngineOptions options;
  options.gather_time = absl::Milliseconds(1);
  TestWorld world(size(), options);
  world.OnEach([&](int, Engine& engine) {
    std::vector<float> a{1};
    const auto handle = engine.Submit({AllReduceOf("a", a)});
    (*handle)->done.Wait();
    EXPECT_EQ(engine.Wait(*handle), absl::OkStatus());
    EXPECT_THAT(a, ElementsAre(size()));
  });
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
