// Tests of the errors that users see when ranks disagree, leave, or die.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex_checks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/engine/engine_test_util.h"
#include "worker_runtime/negotiation/message_codec.h"

namespace hvd::worker_runtime::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Submits an allreduce of "a" on rank 1, and takes its announcement in place of rank 0, which has
// no engine in `world`.
auto SubmitAnnounced(TestWorld& world, std::vector<float>& data) {
  const auto operation = world.engine(1).Submit({AllReduceOf("a", data)});
  EXPECT_TRUE(operation.ok() && world.channel(0).Receive(absl::Seconds(60)).ok());
  return *operation;
}

// Sends rank 1 a plan with one batch, in place of rank 0.
absl::Status SendPlan(TestWorld& world, negotiation::Batch batch) {
  negotiation::Plan plan;
  plan.sequence = 1;
  plan.batches.push_back(std::move(batch));
  return world.channel(0).Send(1, negotiation::Encode(plan, 1));
}

TEST(EngineFailureTest, Mismatch_FailsOnAllRanksAndTheEngineGoesOn) {
  TestWorld world(3);
  for (int round = 0; round < 2; ++round) {
    world.OnEach([&](int rank, Engine& engine) {
      std::vector<float> data(6, 1), good(2, 1);
      TensorRequest bad = AllReduceOf("grad", data);
      bad.shape = {rank == 1 ? 2 : 3, rank == 1 ? 3 : 2};
      const auto good_handle = engine.Submit({AllReduceOf("good", good)});
      EXPECT_EQ(RunOn(engine, {bad}),
                absl::InvalidArgumentError(
                    "Mismatched allreduce of 'grad': ranks 0 and 2 sent float32 [3, 2], "
                    "rank 1 sent float32 [2, 3]"));
      EXPECT_EQ(engine.Wait(*good_handle), absl::OkStatus());
      EXPECT_EQ(good[0], 3);
    });
  }
}

TEST(EngineFailureTest, MismatchInAGroup_FailsTheWholeGroup) {
  TestWorld world(2);
  world.OnEach([](int rank, Engine& engine) {
    std::vector<float> a(2, 1), b(2, 1);
    const negotiation::Reduction reduction =
        rank == 0 ? negotiation::Reduction::kSum : negotiation::Reduction::kMax;
    const absl::Status status =
        RunOn(engine, {AllReduceOf("a", a), AllReduceOf("b", b, reduction)});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), HasSubstr("rank 0 sent float32 [2] for sum"));
    EXPECT_EQ(RunOn(engine, {AllReduceOf("a", a)}), absl::OkStatus());
  });
}

TEST(EngineFailureTest, GatherWhileJoined_FailsOnTheOthers) {
  TestWorld world(2);
  world.OnEach([](int rank, Engine& engine) {
    if (rank == 0) {
      std::vector<float> data(2, 1);
      TensorRequest gather = Bare("g", negotiation::OpKind::kAllGather);
      gather.shape = {2};
      gather.input = data.data();
      const absl::Status status = RunOn(engine, {gather});
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(Message(status), HasSubstr("rank 1 has joined"));
    }
    EXPECT_EQ(RunOn(engine, {Bare("join", negotiation::OpKind::kJoin)}), absl::OkStatus());
  });
}

TEST(EngineFailureTest, DifferentOrder_IsRecognisedAndTheEngineGoesOn) {
  EngineOptions options;
  options.deadlock_time = absl::ZeroDuration();
  TestWorld world(2, options);
  world.OnEach([](int rank, Engine& engine) {
    std::vector<float> data{1}, again{1};
    const absl::Status status = RunOn(engine, {AllReduceOf(rank == 0 ? "a" : "b", data)});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), StartsWith("Mismatched order of operations"));
    EXPECT_THAT(Message(status), HasSubstr("rank 0 waits for allreduce 'a'"));
    EXPECT_THAT(Message(status), HasSubstr("rank 1 waits for allreduce 'b'"));
    EXPECT_EQ(RunOn(engine, {AllReduceOf("a", again)}), absl::OkStatus());
    EXPECT_EQ(again[0], 2);
  });
}

class EngineLeftWaitTest : public testing::Test {
 protected:
  EngineLeftWaitTest() : world_(2, AtOnce()) {}

  static EngineOptions AtOnce() {
    EngineOptions options;
    options.deadlock_time = absl::ZeroDuration();
    return options;
  }
  // Has rank 0 leave its wait for "a" by leave(engine, operation) once rank 0 is known to be
  // blocked. It can still submit what rank 1 waits for.
  void CheckGoesOnAfter(absl::FunctionRef<void(Engine&, const Engine::Handle&)> leave) {
    constexpr absl::Duration kAll = absl::InfiniteDuration();
    std::vector<float> a0{1}, a1{1}, b0{1}, b1{1};
    const auto early = world_.engine(0).Submit({AllReduceOf("a", a0)});
    EXPECT_FALSE(world_.engine(0).WaitAWhile(*early, kAll)) << "and rank 0 is known to be blocked";
    leave(world_.engine(0), *early);
    const auto waited_for = world_.engine(1).Submit({AllReduceOf("b", b1)});
    ASSERT_FALSE(world_.engine(1).WaitAWhile(*waited_for, kAll)) << (*waited_for)->status;
    const auto later = world_.engine(0).Submit({AllReduceOf("b", b0)});
    const auto late = world_.engine(1).Submit({AllReduceOf("a", a1)});
    for (const auto& operation : {early, later}) {
      EXPECT_EQ(world_.engine(0).Wait(*operation), absl::OkStatus());
    }
    for (const auto& operation : {waited_for, late}) {
      EXPECT_EQ(world_.engine(1).Wait(*operation), absl::OkStatus());
    }
  }

  TestWorld world_;
};

TEST_F(EngineLeftWaitTest, WaitEndedByASignal_IsNotPartOfADeadlock) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  CheckGoesOnAfter([](Engine& engine, const Engine::Handle& operation) {
    std::atomic<bool> woken{false};
    std::thread sender([&, waiter = pthread_self()] {
      while (!woken.load()) pthread_kill(waiter, SIGUSR1);
    });
    EXPECT_FALSE(engine.WaitAWhile(operation, absl::InfiniteDuration()));
    woken = true;
    sender.join();
  });
}

TEST_F(EngineLeftWaitTest, WaitWhoseTimeIsOver_IsNotPartOfADeadlock) {
  CheckGoesOnAfter([](Engine& engine, const Engine::Handle& operation) {
    EXPECT_FALSE(engine.WaitAWhile(operation, absl::Milliseconds(1)));
  });
}

TEST(EngineFailureTest, Stall_IsReportedOnRankZero) {
  absl::Mutex mutex;
  std::vector<negotiation::StallReport> reports;
  EngineOptions options;
  options.settings.stall_warning_time = absl::Milliseconds(1);
  options.on_stall = [&](const negotiation::StallReport& report) {
    absl::MutexLock lock(&mutex);
    reports.push_back(report);
  };
  TestWorld world(2, options);
  std::vector<float> data{1}, peer{1};
  const auto handle = world.engine(1).Submit({AllReduceOf("late", data)});
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(
        +[](std::vector<negotiation::StallReport>* r) { return !r->empty(); }, &reports));
    ASSERT_EQ(reports[0].waiting.size(), 1u);
    EXPECT_EQ(reports[0].waiting[0].what, "allreduce 'late'");
    EXPECT_EQ(reports[0].waiting[0].missing, std::vector<int>{0});
  }
  EXPECT_EQ(RunOn(world.engine(0), {AllReduceOf("late", peer)}), absl::OkStatus());
  EXPECT_EQ(world.engine(1).Wait(*handle), absl::OkStatus());
}

// Any rank may leave first; the others learn who it was.
TEST(EngineFailureTest, Shutdown_FailsPendingOperationsOnAllRanks) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    TestWorld world(3);
    world.OnEach([&](int rank, Engine& engine) {
      std::vector<float> data{1};
      EXPECT_EQ(RunOn(engine, {Bare("start", negotiation::OpKind::kBarrier)}), absl::OkStatus());
      if (rank == leaver) return engine.Shutdown();
      const absl::Status status = RunOn(engine, {AllReduceOf("a", data)});
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
      EXPECT_THAT(Message(status), StartsWith("Horovod has been shut down "));
      EXPECT_THAT(Message(status), HasSubstr(absl::StrCat("Rank ", leaver, " left first")));
      EXPECT_EQ(engine.Submit({AllReduceOf("b", data)}).status(), status);
    });
  }
}

TEST(EngineFailureTest, Shutdown_OfALoneRank_FailsNothingThatIsDone) {
  TestWorld world(1);
  std::vector<float> data{1};
  const auto handle = world.engine(0).Submit({AllReduceOf("a", data)});
  EXPECT_EQ(world.engine(0).Wait(*handle), absl::OkStatus());
  world.engine(0).Shutdown();
  world.engine(0).Shutdown();
  EXPECT_EQ(world.engine(0).Wait(*handle), absl::OkStatus());
}

// The last operations overlap with the ranks' leaving.
TEST(EngineFailureTest, Shutdown_WithWorkInFlight_NeitherHangsNorLies) {
  for (int round = 0; round < 20; ++round) {
    TestWorld world(3);
    world.OnEach([&](int rank, Engine& engine) {
      std::vector<std::vector<float>> data(8, std::vector<float>(100, 1));
      std::vector<Engine::Handle> handles;
      for (int i = 0; i < 8; ++i) {
        const auto handle = engine.Submit({AllReduceOf(absl::StrCat("t", i), data[i])});
        if (handle.ok()) handles.push_back(*handle);
      }
      engine.Shutdown();
      for (size_t i = 0; i < handles.size(); ++i) {
        const absl::Status status = engine.Wait(handles[i]);
        if (status.ok()) {
          EXPECT_EQ(data[i][0], 3);
        } else {
          EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
        }
      }
    });
  }
}

// Like a DataLoader's worker that exits normally.
TEST(EngineFailureTest, Shutdown_InAForkedChild_LeavesTheParentAlone) {
  TestWorld world(1);
  const pid_t child = fork();
  if (child == 0) {
    // As in every worker: a lock of theirs, which the engine's thread may just have had, stays
    // locked here.
    SwitchOffMutexChecks();
    world.engine(0).Shutdown();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::vector<float> data{1};
  EXPECT_EQ(RunOn(world.engine(0), {AllReduceOf("a", data)}), absl::OkStatus());
}

TEST(EngineFailureTest, StartAndShutdown_AHundredTimes) {
  for (int round = 0; round < 100; ++round) {
    TestWorld world(2);
    world.OnEach([](int, Engine& engine) {
      std::vector<float> data{1};
      EXPECT_EQ(RunOn(engine, {AllReduceOf("a", data)}), absl::OkStatus());
    });
  }
}

TEST(EngineFailureTest, Abort_FailsAllHandlesAlikeOnEveryRank) {
  TestWorld world(3);
  const absl::Status reason = absl::UnavailableError("worker 7 was killed");
  std::atomic<int> submitted{0};
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<float> data{1}, more{1};
    const auto handle = engine.Submit({AllReduceOf(absl::StrCat("only on ", rank), data)});
    ASSERT_TRUE(handle.ok());
    if (++submitted == 3) world.engine(2).Abort(reason);
    EXPECT_EQ(engine.Wait(*handle), reason);
    EXPECT_EQ(engine.Submit({AllReduceOf("b", more)}).status(), reason);
  });
}

TEST(EngineFailureTest, PeerGone_IsNamedOnEveryRank) {
  for (int victim : {0, 1, 2}) {
    TestWorld world(3, {}, victim);
    std::atomic<int> waiting{0};
    world.OnEach([&](int rank, Engine& engine) {
      std::vector<float> data{1};
      const auto handle = engine.Submit({AllReduceOf("a", data)});
      if (++waiting == 2) world.Kill(victim);
      const absl::Status status = handle.ok() ? engine.Wait(*handle) : handle.status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(Message(status), HasSubstr(absl::StrCat("rank ", victim, " is gone")));
    });
  }
}

// The victim has announced its tensor, so the others are in the middle of the collective when it
// dies. What the backend reports of that differs from rank to rank; what users see does not.
TEST(EngineFailureTest, PeerDiesInACollective_TheCauseIsFoundOnEveryRank) {
  for (int victim : {1, 2}) {
    TestWorld world(3, {}, victim);
    negotiation::Announcement announcement;
    negotiation::TensorSignature signature;
    signature.name = "a";
    signature.shape = {1};
    announcement.groups = {
        {{negotiation::kNoSignatureId, std::make_shared<negotiation::TensorSignature>(signature)}}};
    ASSERT_TRUE(world.channel(victim).Send(0, negotiation::Encode(announcement)).ok());
    std::thread dying([&] {
      auto plan = world.channel(victim).Receive(absl::Seconds(60));
      EXPECT_TRUE(plan.ok() && plan->size() == 1);
      world.Kill(victim);
    });
    world.OnEach([&](int rank, Engine& engine) {
      std::vector<float> data{1};
      const absl::Status status = RunOn(engine, {AllReduceOf("a", data)});
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(Message(status), HasSubstr(absl::StrCat("rank ", victim, " is gone")));
    });
    dying.join();
  }
}

// A rank that sends invalid messages breaks the epoch, and no rank crashes.
// The others are in the middle of the collective meanwhile, and never get its data.
TEST(EngineFailureTest, NoMemoryForAResult_FailsOnEveryRank) {
  for (const int poor : {0, 1}) {
    TestWorld world(3);
    world.OnEach([poor](int rank, Engine& engine) {
      char place = 0;
      TensorRequest request = Bare("vast", negotiation::OpKind::kBroadcast);
      request.type = collectives::DataType::kUint8;
      request.shape = {int64_t{1} << 50};
      request.root_rank = poor;
      if (rank != poor) request.output = &place;
      EXPECT_EQ(
          RunOn(engine, {request}),
          absl::ResourceExhaustedError(absl::StrCat(
              "rank ", poor, ": no memory for the result of 'vast', 1125899906842624 bytes")));
    });
  }
}

TEST(EngineFailureTest, NonsenseFromAPeer_BreaksTheEpoch) {
  TestWorld world(2, {}, 1);
  std::vector<float> data{1};
  ASSERT_TRUE(world.channel(1).Send(0, "\xff\xfe nonsense").ok());
  const absl::Status status = RunOn(world.engine(0), {AllReduceOf("a", data)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  world.Kill(1);
}

// The tensors already taken for the batch fail with the epoch as well.
TEST(EngineFailureTest, PlanNamesWhatWasNotSubmitted_TheRestOfTheBatchFails) {
  TestWorld world(2, {}, 0);
  std::vector<float> data{1};
  const auto operation = SubmitAnnounced(world, data);
  negotiation::Batch batch;
  for (const char* name : {"a", "unknown"}) {
    auto signature = std::make_shared<negotiation::TensorSignature>(*operation->signatures[0]);
    signature->name = name;
    batch.emplace_back().signature = std::move(signature);
  }
  ASSERT_TRUE(SendPlan(world, std::move(batch)).ok());
  EXPECT_THAT(Message(world.engine(1).Wait(operation)),
              HasSubstr("'unknown', which rank 1 has not"));
  world.Kill(0);
}

// Connections are not encrypted by default, so whoever can change packets can change a plan. It
// must not reach beyond the tensor's memory.
TEST(EngineFailureTest, PlanOfAnotherSize_BreaksTheEpoch) {
  TestWorld world(2, {}, 0);
  std::vector<float> data{1};
  const auto operation = SubmitAnnounced(world, data);
  auto signature = std::make_shared<negotiation::TensorSignature>(*operation->signatures[0]);
  signature->shape = {2};
  negotiation::Batch batch(1);
  batch[0].signature = std::move(signature);
  ASSERT_TRUE(SendPlan(world, std::move(batch)).ok());
  EXPECT_THAT(Message(world.engine(1).Wait(operation)),
              HasSubstr("the plan for 'a' does not fit the request of rank 1"));
  world.Kill(0);
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
