// Tests of Runtime::SubmitThen.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "base/settings/runtime_env.h"
#include "collectives/inproc/inproc_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/api/testing/runtime_fixture.h"

namespace hvd::worker_runtime::api {
namespace {

using negotiation::OpKind;
using ::testing::ElementsAre;

bool HoldsInAChild(const std::function<bool()>& condition) {
  const pid_t child = fork();
  if (child == 0) _exit(condition() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

// The arguments of the callbacks, in order.
class Calls {
 public:
  // Notes `number` and the status, and releases the handle.
  Runtime::Done Of(Runtime& worker, int number) {
    return [this, &worker, number](Runtime::Handle handle, const absl::Status& status) {
      worker.Release(handle);
      absl::MutexLock lock(&mutex_);
      numbers_.push_back(number);
      statuses_.push_back(status);
    };
  }
  void AwaitCount(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto are_there = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return numbers_.size() >= count;
    };
    mutex_.Await(absl::Condition(&are_there));
  }
  std::vector<int> numbers() const {
    absl::MutexLock lock(&mutex_);
    return numbers_;
  }
  std::vector<absl::Status> statuses() const {
    absl::MutexLock lock(&mutex_);
    return statuses_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<int> numbers_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> statuses_ ABSL_GUARDED_BY(mutex_);
};

// A world of one.
class LoneCallbacksTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(worker_.Init(), absl::OkStatus()); }

  // Returns when the callback runs; the callback ends when the test allows it.
  void SubmitBlocking(absl::Notification& may_end) {
    absl::Notification began;
    ASSERT_EQ(worker_.SubmitThen({Request(OpKind::kBarrier, "blocking")}, 0,
                                 [&](Runtime::Handle handle, const absl::Status&) {
                                   began.Notify();
                                   may_end.WaitForNotification();
                                   worker_.Release(handle);
                                 }),
              absl::OkStatus());
    began.WaitForNotification();
  }

  Runtime worker_{settings::RuntimeEnv(), nullptr, collectives::inproc::MakeInprocBackend()};
  Calls calls_;
};

TEST_F(LoneCallbacksTest, SubmitThen_OneAfterAnother_AreCalledInThatOrder) {
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(i);
    ASSERT_EQ(worker_.SubmitThen({Request(OpKind::kBarrier, "b")}, 0, calls_.Of(worker_, i)),
              absl::OkStatus());
    calls_.AwaitCount(i + 1);  // the name is free again
  }
  EXPECT_EQ(calls_.numbers(), expected);
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
}

TEST_F(LoneCallbacksTest, SubmitThen_ResultIsTheRuntimesMemory_CallbackTakesAndReleasesIt) {
  std::vector<float> data{1, 2, 3}, result;
  absl::Status taken_late;
  absl::Notification ended;
  engine::TensorRequest request = Request(OpKind::kAllGather, "a", &data);
  request.output = nullptr;
  ASSERT_EQ(worker_.SubmitThen({request}, 0,
                               [&](Runtime::Handle handle, const absl::Status& status) {
                                 EXPECT_EQ(status, absl::OkStatus());
                                 const engine::TensorResult& tensor =
                                     (*worker_.Results(handle))->front();
                                 const auto* floats = static_cast<const float*>(tensor.data);
                                 result.assign(floats, floats + tensor.shape[0]);
                                 worker_.Release(handle);
                                 taken_late = worker_.Results(handle).status();
                                 ended.Notify();
                               }),
            absl::OkStatus());
  ended.WaitForNotification();
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
  EXPECT_THAT(result, ElementsAre(1, 2, 3));
  EXPECT_TRUE(absl::IsNotFound(taken_late)) << taken_late;
}

TEST_F(LoneCallbacksTest, SubmitThen_Refused_IsNeverCalled) {
  engine::TensorRequest bad = Request(OpKind::kAllReduce, "a");
  bad.shape = {-1};
  EXPECT_TRUE(absl::IsInvalidArgument(worker_.SubmitThen({bad}, 0, calls_.Of(worker_, 1))));
  EXPECT_FALSE(worker_.SubmitThen({Request(OpKind::kBarrier, "b")}, 7, calls_.Of(worker_, 2)).ok());
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      worker_.SubmitThen({Request(OpKind::kBarrier, "b")}, 0, calls_.Of(worker_, 3))));
  EXPECT_THAT(calls_.numbers(), ElementsAre());
}

TEST_F(LoneCallbacksTest, Shutdown_CallbackIsSlow_ReturnsWhenItHas) {
  absl::Notification began;
  std::atomic<bool> has_returned{false}, ended{false};
  ASSERT_EQ(worker_.SubmitThen({Request(OpKind::kBarrier, "b")}, 0,
                               [&](Runtime::Handle handle, const absl::Status&) {
                                 began.Notify();
                                 worker_.Release(handle);
                                 while (worker_.place().has_value()) std::this_thread::yield();
                                 // Takes turns with Shutdown: all of it but the waiting is over.
                                 EXPECT_FALSE(worker_.StartTimeline("", false).ok());
                                 for (int i = 0; i < 1000; ++i) std::this_thread::yield();
                                 EXPECT_FALSE(has_returned);
                                 ended = true;
                               }),
            absl::OkStatus());
  began.WaitForNotification();
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
  has_returned = true;
  EXPECT_TRUE(ended);
}

TEST_F(LoneCallbacksTest, Shutdown_ByACallback_IsRefusedAndTheWorldGoesOn) {
  absl::Status refused;
  ASSERT_EQ(worker_.SubmitThen({Request(OpKind::kBarrier, "b")}, 0,
                               [&](Runtime::Handle handle, const absl::Status&) {
                                 worker_.Release(handle);
                                 refused = worker_.Shutdown();
                                 // It may submit, and wait.
                                 const auto next = worker_.Submit({Request(OpKind::kBarrier, "c")});
                                 EXPECT_EQ(worker_.Finish({*next}), absl::OkStatus());
                                 EXPECT_EQ(worker_.SubmitThen({Request(OpKind::kBarrier, "d")}, 0,
                                                              calls_.Of(worker_, 1)),
                                           absl::OkStatus());
                               }),
            absl::OkStatus());
  calls_.AwaitCount(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
  EXPECT_THAT(calls_.statuses(), ElementsAre(absl::OkStatus()));
}

TEST_F(LoneCallbacksTest, SubmitThen_ACallbackIsSlow_OperationsGoOnAndTheOthersWaitInOrder) {
  absl::Notification may_end;
  SubmitBlocking(may_end);
  std::vector<int> expected;
  for (int i = 0; i < 10; ++i) {
    expected.push_back(i);
    ASSERT_EQ(worker_.SubmitThen({Request(OpKind::kBarrier, absl::StrCat("next", i))}, 0,
                                 calls_.Of(worker_, i)),
              absl::OkStatus());
    const auto handle = worker_.Submit({Request(OpKind::kBarrier, "b")});
    ASSERT_EQ(handle.status(), absl::OkStatus());
    EXPECT_EQ(worker_.Finish({*handle}), absl::OkStatus());
  }
  EXPECT_THAT(calls_.numbers(), ElementsAre());
  may_end.Notify();
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
  EXPECT_EQ(calls_.numbers(), expected);
}

TEST_F(LoneCallbacksTest, ForkedChild_Submits_IsRefused) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan does not support threads in a forked child";
#endif
  absl::Notification may_end;
  SubmitBlocking(may_end);
  EXPECT_TRUE(HoldsInAChild([&] {
    const absl::Status refused =
        worker_.SubmitThen({Request(OpKind::kBarrier, "c")}, 0, calls_.Of(worker_, 1));
    return absl::IsFailedPrecondition(refused) && absl::StrContains(refused.message(), "forked") &&
           calls_.numbers().empty();
  }));
  may_end.Notify();
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
  EXPECT_THAT(calls_.numbers(), ElementsAre());
}

TEST_F(LoneCallbacksTest, ForkedChild_LeavesWhileTheParentsCallbackRuns_DoesNotWaitForIt) {
  absl::Notification may_end;
  SubmitBlocking(may_end);
  EXPECT_TRUE(HoldsInAChild([&] { return worker_.Shutdown().ok(); }));
  may_end.Notify();
  EXPECT_EQ(worker_.Shutdown(), absl::OkStatus());
}

class CallbacksTest : public WorkersTest {
 protected:
  std::vector<Calls> calls_{3};  // of each rank
};

// No thread waits for an operation: the engines' threads run all rounds.
TEST_F(CallbacksTest, SubmitThen_ManyInFlight_EachIsCalledOnceInTheSameOrderOnAllRanks) {
  constexpr int kOperations = 200;
  StartWorkers(2);
  OnEach([&](int rank, Runtime& worker) {
    std::vector<std::vector<float>> data(kOperations, {1});
    for (int i = 0; i < kOperations; ++i) {
      ASSERT_EQ(worker.SubmitThen({Request(OpKind::kAllReduce, absl::StrCat("t", i), &data[i])}, 0,
                                  calls_[rank].Of(worker, i)),
                absl::OkStatus());
    }
    calls_[rank].AwaitCount(kOperations);
    for (const std::vector<float>& of_operation : data) EXPECT_THAT(of_operation, ElementsAre(2));
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  });
  for (int rank : {0, 1}) {
    for (const absl::Status& status : calls_[rank].statuses()) EXPECT_EQ(status, absl::OkStatus());
    EXPECT_EQ(calls_[rank].numbers().size(), kOperations);
    EXPECT_EQ(calls_[rank].numbers(), calls_[0].numbers());
  }
}

TEST_F(CallbacksTest, SubmitThen_RanksDoNotMatch_ReturnsErrorAndTheWorldContinues) {
  StartWorkers(2);
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> unlike(rank + 1, 1), alike{1};
    ASSERT_EQ(worker.SubmitThen({Request(OpKind::kAllReduce, "a", &unlike)}, 0,
                                calls_[rank].Of(worker, 1)),
              absl::OkStatus());
    calls_[rank].AwaitCount(1);
    EXPECT_TRUE(absl::IsInvalidArgument(calls_[rank].statuses()[0]));
    ASSERT_EQ(worker.SubmitThen({Request(OpKind::kAllReduce, "b", &alike)}, 0,
                                calls_[rank].Of(worker, 2)),
              absl::OkStatus());
    calls_[rank].AwaitCount(2);
    EXPECT_EQ(calls_[rank].statuses()[1], absl::OkStatus());
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  });
}

TEST_F(CallbacksTest, WorldBreaks_EachIsCalledOnceWithTheReason) {
  constexpr int kOperations = 20;
  StartWorkers(2);
  // Rank 1 submits none of them.
  std::vector<int> expected;
  for (int i = 0; i < kOperations; ++i) {
    expected.push_back(i);
    ASSERT_EQ(workers_[0]->SubmitThen({Request(OpKind::kBarrier, absl::StrCat("b", i))}, 0,
                                      calls_[0].Of(*workers_[0], i)),
              absl::OkStatus());
  }
  daemon_.Break("host b was lost");
  calls_[0].AwaitCount(kOperations);
  OnEach([](int, Runtime& worker) { EXPECT_EQ(worker.Shutdown(), absl::OkStatus()); });
  EXPECT_THAT(calls_[0].numbers(), ::testing::UnorderedElementsAreArray(expected));
  for (const absl::Status& status : calls_[0].statuses()) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_EQ(status.message(), "host b was lost");
  }
}

TEST_F(CallbacksTest, Shutdown_OperationsAreInFlight_AllHaveBeenCalledBeforeItReturns) {
  StartWorkers(2);
  OnEach([&](int rank, Runtime& worker) {
    size_t submitted = 0;
    for (int i = 0; i < 20; ++i) {
      // The other rank, which may have left already, never submits this.
      const std::string name = absl::StrCat("b", rank, ".", i);
      submitted +=
          worker.SubmitThen({Request(OpKind::kBarrier, name)}, 0, calls_[rank].Of(worker, i)).ok();
    }
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
    EXPECT_EQ(calls_[rank].numbers().size(), submitted);
    for (const absl::Status& status : calls_[rank].statuses()) {
      EXPECT_TRUE(absl::IsAborted(status)) << status;
    }
  });
}

TEST_F(CallbacksTest, Reset_OperationsAreInFlight_TheirCallbacksComeBeforeTheNextWorlds) {
  constexpr int kWorlds = 10;
  StartWorkers(2);
  std::vector<std::unique_ptr<absl::Barrier>> joined;
  for (int world = 0; world < kWorlds; ++world)
    joined.push_back(std::make_unique<absl::Barrier>(2));
  OnEach([&](int rank, Runtime& worker) {
    std::vector<int> expected;
    for (int world = 0; world < kWorlds; ++world) {
      // A rank that still joins a world which the other one leaves goes on to the next one, so that
      // it would reset once less.
      joined[world]->Block();
      // The other rank, which may have left this world already, never submits this.
      const std::string name = absl::StrCat("b", rank);
      if (worker.SubmitThen({Request(OpKind::kBarrier, name)}, 0, calls_[rank].Of(worker, world))
              .ok()) {
        expected.push_back(world);
      }
      ASSERT_EQ(worker.Reset(), absl::OkStatus());
    }
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
    EXPECT_EQ(calls_[rank].numbers(), expected);
    for (const absl::Status& status : calls_[rank].statuses()) EXPECT_FALSE(status.ok());
  });
}

TEST_F(CallbacksTest, RemoveProcessSet_OperationIsInFlight_IsCalled) {
  StartWorkers(3);
  OnEach([&](int rank, Runtime& worker) {
    int32_t id = 0;
    ASSERT_EQ(worker.active()->process_sets().Add({0, 1}, &id), absl::OkStatus());
    if (rank == 0) {
      ASSERT_EQ(worker.SubmitThen({Request(OpKind::kBarrier, "b")}, id, calls_[rank].Of(worker, 1)),
                absl::OkStatus());
    }
    ASSERT_EQ(worker.active()->process_sets().Remove(id), absl::OkStatus());
    if (rank == 0) {
      calls_[rank].AwaitCount(1);
      EXPECT_FALSE(calls_[rank].statuses()[0].ok());
    }
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  });
}

}  // namespace
}  // namespace hvd::worker_runtime::api
