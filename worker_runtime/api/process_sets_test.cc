#include "worker_runtime/api/process_sets.h"

#include <dirent.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "collectives/gloo/gloo_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/fake_daemon.h"
#include "worker_runtime/api/runtime.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

TensorRequest AllReduceOf(std::vector<float>& data, const std::string& name = "x") {
  TensorRequest request;
  request.name = name;
  request.shape = {static_cast<int64_t>(data.size())};
  request.input = request.output = data.data();
  return request;
}

TensorRequest Bare(OpKind op) {
  TensorRequest request;
  request.name = "bare";
  request.op = op;
  return request;
}

absl::Status RunOn(Runtime& worker, int32_t set, TensorRequest request) {
  const auto handle = worker.Submit({std::move(request)}, set);
  if (!handle.ok()) return handle.status();
  const absl::Status status = worker.Wait(*handle);
  worker.Release(*handle);
  return status;
}

// The sum of the members' ranks of the world; -1 if it can't be had.
float SumOfRanks(Runtime& worker, int32_t set) {
  std::vector<float> data{static_cast<float>(worker.place()->rank)};
  const absl::Status status = RunOn(worker, set, AllReduceOf(data));
  EXPECT_EQ(status, absl::OkStatus());
  return status.ok() ? data[0] : -1;
}

absl::Status Add(Runtime& worker, std::vector<int> ranks, int32_t* id) {
  return worker.active()->process_sets().Add(std::move(ranks), id);
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// A world of threads, with real connections.
class ProcessSetsTest : public ::testing::Test {
 protected:
  void Start(int size) {
    daemon_.SetSize(size);
    for (int i = 0; i < size; ++i) {
      const WorkerStanding standing{WorkerId(i + 10), "127.0.0.1", /*elastic=*/true,
                                    absl::Seconds(1)};
      workers_.push_back(std::make_unique<Runtime>(
          RuntimeEnv(),
          std::make_shared<Session>(standing, Incarnation(i + 20), daemon_.NewClients()),
          MakeGlooBackend()));
    }
    OnEach([](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  }

  void OnEach(const std::function<void(int, Runtime&)>& f) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] { f(static_cast<int>(i), *workers_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // On all ranks; returns the id.
  int32_t AddOnAll(const std::vector<int>& ranks) {
    std::atomic<int32_t> result{0};
    OnEach([&](int, Runtime& worker) {
      int32_t id = 0;
      EXPECT_EQ(Add(worker, ranks, &id), absl::OkStatus());
      const int32_t before = result.exchange(id);
      EXPECT_TRUE(before == 0 || before == id);
    });
    return result;
  }

  FakeDaemon daemon_{1};
  std::vector<std::unique_ptr<Runtime>> workers_;
};

TEST_F(ProcessSetsTest, Add_OverlappingSets_EachReducesAmongItsMembers) {
  Start(3);
  EXPECT_EQ(AddOnAll({1, 0}), 1);
  EXPECT_EQ(AddOnAll({1, 2}), 2);
  EXPECT_EQ(AddOnAll({2}), 3);
  OnEach([](int rank, Runtime& worker) {
    for (int round = 0; round < 3; ++round) {
      if (rank <= 1) {
        EXPECT_EQ(SumOfRanks(worker, 1), 1);
      }
      if (rank >= 1) {
        EXPECT_EQ(SumOfRanks(worker, 2), 3);
      }
      if (rank == 2) {
        EXPECT_EQ(SumOfRanks(worker, 3), 2);
      }
      EXPECT_EQ(SumOfRanks(worker, 0), 3);
    }
  });
}

TEST_F(ProcessSetsTest, Submit_OneSetWaitsForAMember_TheOthersGoOn) {
  Start(3);
  const int32_t slow = AddOnAll({0, 1}), quick = AddOnAll({0, 2});
  absl::Notification others_are_done;
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> data{1};
    if (rank == 1) {
      // The same name may be in flight in several sets.
      others_are_done.WaitForNotification();
      EXPECT_EQ(RunOn(worker, slow, AllReduceOf(data)), absl::OkStatus());
      return;
    }
    if (rank == 2) {
      for (int i = 0; i < 10; ++i) EXPECT_EQ(SumOfRanks(worker, quick), 2);
      return;
    }
    const auto waiting = worker.Submit({AllReduceOf(data)}, slow);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(SumOfRanks(worker, quick), 2);
    EXPECT_FALSE(*worker.Poll(*waiting));
    others_are_done.Notify();
    EXPECT_EQ(worker.Wait(*waiting), absl::OkStatus());
    EXPECT_EQ(data[0], 2);
  });
}

TEST_F(ProcessSetsTest, Add_BadRanks_FailOnAllRanksAndTheWorldGoesOn) {
  Start(2);
  AddOnAll({1});
  OnEach([](int rank, Runtime& worker) {
    int32_t id;
    EXPECT_EQ(
        Add(worker, {0, 7}, &id),
        absl::InvalidArgumentError("Process set [0, 7]: there is no rank 7 in a world of 2."));
    EXPECT_EQ(Add(worker, {0, 0}, &id),
              absl::InvalidArgumentError("Process set [0, 0]: rank 0 is named twice."));
    EXPECT_EQ(Add(worker, {}, &id).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Add(worker, {rank}, &id),
              absl::InvalidArgumentError("Mismatched process sets: rank 0 wants to add [0], "
                                         "rank 1 wants to add [1]"));
    EXPECT_EQ(Add(worker, {1}, &id).code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(id, 1);
    EXPECT_EQ(Add(worker, {1, 0}, &id).code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(id, 0);
    EXPECT_EQ(worker.active()->process_sets().Remove(9).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(SumOfRanks(worker, 0), 1);
    ASSERT_EQ(Add(worker, {0}, &id), absl::OkStatus());
    EXPECT_EQ(id, 2);
  });
}

TEST_F(ProcessSetsTest, Submit_NotAMemberOrNoSuchSet_IsInvalidArgument) {
  Start(2);
  const int32_t set = AddOnAll({1});
  std::vector<float> data{1};
  Runtime& worker = *workers_[0];
  EXPECT_EQ(
      RunOn(worker, set, AllReduceOf(data)),
      absl::InvalidArgumentError("Allreduce: Rank 0 is not a member of the provided process set."));
  EXPECT_EQ(RunOn(worker, 7, Bare(OpKind::kBarrier)),
            absl::InvalidArgumentError(
                "Barrier: Process set provided does not exist, or has not been registered."));
  Runtime& member = *workers_[1];
  EXPECT_EQ(RunOn(member, set, Bare(OpKind::kJoin)),
            absl::InvalidArgumentError("Join is for the global process set only."));
  TensorRequest broadcast = AllReduceOf(data);
  broadcast.op = OpKind::kBroadcast;
  EXPECT_EQ(RunOn(member, set, broadcast),
            absl::InvalidArgumentError(
                "broadcast received invalid root rank 0 for provided process set"));
}

TEST_F(ProcessSetsTest, Submit_Broadcast_RootIsARankOfTheWorld) {
  Start(3);
  const int32_t set = AddOnAll({1, 2});
  OnEach([&](int rank, Runtime& worker) {
    if (rank == 0) return;
    std::vector<float> data{static_cast<float>(rank)};
    TensorRequest request = AllReduceOf(data);
    request.op = OpKind::kBroadcast;
    request.root_rank = 2;
    EXPECT_EQ(RunOn(worker, set, request), absl::OkStatus());
    EXPECT_EQ(data[0], 2);
  });
}

TEST_F(ProcessSetsTest, Submit_Mismatch_SaysWhichRanksTheSetHasAndAllGoesOn) {
  Start(3);
  const int32_t set = AddOnAll({1, 2});
  OnEach([&](int rank, Runtime& worker) {
    if (rank > 0) {
      std::vector<float> data(rank, 1);
      const absl::Status status = RunOn(worker, set, AllReduceOf(data));
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(Message(status), HasSubstr("rank 0 sent float32 [1]"));
      EXPECT_THAT(Message(status), HasSubstr("process set 1, which has the world's ranks 1 and 2"));
      EXPECT_EQ(SumOfRanks(worker, set), 3);
    }
    EXPECT_EQ(SumOfRanks(worker, 0), 3);
  });
}

TEST_F(ProcessSetsTest, Remove_FailsWhatIsInFlightThereOnlyAndGivesNoIdAgain) {
  Start(2);
  const int32_t set = AddOnAll({0}), other = AddOnAll({1});
  OnEach([&](int rank, Runtime& worker) {
    // Waits for nobody but may not have begun.
    const auto handle =
        rank == 0 ? worker.Submit({Bare(OpKind::kBarrier)}, set) : absl::StatusOr<int64_t>(0);
    ASSERT_TRUE(handle.ok());
    ProcessSets& sets = worker.active()->process_sets();
    EXPECT_EQ(
        sets.Remove(rank == 0 ? set : other),
        absl::InvalidArgumentError("Mismatched process sets: rank 0 wants to remove process set 1, "
                                   "rank 1 wants to remove process set 2"));
    EXPECT_EQ(sets.Remove(set), absl::OkStatus());
    if (rank == 0) {
      worker.Wait(*handle).IgnoreError();
      worker.Release(*handle);
      EXPECT_EQ(RunOn(worker, set, Bare(OpKind::kBarrier)).code(),
                absl::StatusCode::kInvalidArgument);
    } else {
      EXPECT_EQ(SumOfRanks(worker, other), 1);
    }
    int32_t id;
    ASSERT_EQ(Add(worker, {0}, &id), absl::OkStatus());
    EXPECT_EQ(id, 3);
  });
}

TEST_F(ProcessSetsTest, Remove_AnOperationWaitsForAMember_ItFailsAndTheWorldGoesOn) {
  Start(3);
  const int32_t set = AddOnAll({0, 2});
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> data{1};
    const auto handle =
        rank == 0 ? worker.Submit({AllReduceOf(data)}, set) : absl::StatusOr<int64_t>(0);
    ASSERT_TRUE(handle.ok());
    EXPECT_EQ(worker.active()->process_sets().Remove(set), absl::OkStatus());
    if (rank == 0) {
      EXPECT_EQ(worker.Wait(*handle).code(), absl::StatusCode::kAborted);
    }
    EXPECT_EQ(SumOfRanks(worker, 0), 3);
  });
}

TEST_F(ProcessSetsTest, Submit_ASetBreaks_EverythingOnAllRanksFailsForTheSameReason) {
  Start(3);
  const int32_t broken = AddOnAll({0, 1}), other = AddOnAll({0, 2});
  absl::Barrier* const all_wait = new absl::Barrier(3);
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> data{1}, more{1};
    // Rank 1 takes part in neither.
    const auto in_world =
        rank == 1 ? absl::StatusOr<int64_t>(0) : worker.Submit({AllReduceOf(data)});
    const auto in_set = rank == 0 ? worker.Submit({AllReduceOf(more)}, other) : in_world;
    ASSERT_TRUE(in_world.ok() && in_set.ok());
    if (all_wait->Block()) delete all_wait;
    if (rank == 1) {
      std::vector<SignaturePtr> requests{
          std::make_shared<const TensorSignature>(Bare(OpKind::kBarrier))};
      (*worker.active()->process_sets().Prepare(broken, requests))
          ->Abort(absl::UnavailableError("the cable was cut"));
      EXPECT_THAT(Message(RunOn(worker, broken, Bare(OpKind::kBarrier))),
                  HasSubstr("the cable was cut"));
      return;
    }
    EXPECT_THAT(Message(worker.Wait(*in_world)), HasSubstr("the cable was cut"));
    if (rank == 0) {
      EXPECT_THAT(Message(worker.Wait(*in_set)), HasSubstr("the cable was cut"));
    }
  });
}

TEST_F(ProcessSetsTest, Shutdown_OfOneRank_EndsWhatTheOthersWaitForInSets) {
  Start(3);
  const int32_t set = AddOnAll({0, 1});
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> data{1};
    if (rank == 1) {
      EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
    } else if (rank == 0) {
      const absl::Status status = RunOn(worker, set, AllReduceOf(data));
      EXPECT_THAT(Message(status), HasSubstr("Horovod has been shut down."));
    } else {
      // A registration, too.
      int32_t id;
      EXPECT_EQ(Add(worker, {0, 2}, &id).code(), absl::StatusCode::kAborted);
    }
  });
}

// As scripts end: what is complete for one rank must be so for all, whoever leaves first.
TEST_F(ProcessSetsTest, Shutdown_AfterABarrier_BreaksNobodysBarrier) {
  for (int round = 0; round < 20; ++round) {
    workers_.clear();
    Start(3);
    const int32_t set = AddOnAll({0, 2}), other = AddOnAll({0, 1});
    OnEach([&](int rank, Runtime& worker) {
      if (rank != 1) {
        EXPECT_EQ(SumOfRanks(worker, set), 2);
      }
      if (rank != 2) {
        EXPECT_EQ(SumOfRanks(worker, other), 1);
      }
      EXPECT_EQ(RunOn(worker, 0, Bare(OpKind::kBarrier)), absl::OkStatus());
      EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
    });
  }
}

// Can't connect when told so.
class FlakyBackend : public Backend {
 public:
  explicit FlakyBackend(const std::atomic<bool>& fails) : fails_(fails) {}
  absl::string_view name() const override { return "flaky"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    if (fails_) return absl::UnavailableError("no descriptors left");
    return real_->Connect(group, keys, bounds);
  }

 private:
  const std::atomic<bool>& fails_;
  const std::unique_ptr<Backend> real_ = MakeGlooBackend();
};

TEST_F(ProcessSetsTest, Add_AMemberCannotConnect_FailsOnAllRanksAndTheWorldGoesOn) {
  Start(3);
  std::atomic<bool> fails{false};
  workers_[1] = std::make_unique<Runtime>(
      RuntimeEnv(),
      std::make_shared<Session>(WorkerStanding{WorkerId(11), "127.0.0.1", true, absl::Seconds(1)},
                                Incarnation(99), daemon_.NewClients()),
      std::make_unique<FlakyBackend>(fails));
  OnEach([](int, Runtime& worker) { ASSERT_EQ(worker.Reset(), absl::OkStatus()); });
  fails = true;
  OnEach([&](int, Runtime& worker) {
    int32_t id;
    const absl::Status status = Add(worker, {0, 1}, &id);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(Message(status), HasSubstr("rank 1 can't connect"));
    EXPECT_THAT(Message(status), HasSubstr("no descriptors left"));
    EXPECT_EQ(SumOfRanks(worker, 0), 3);
  });
  fails = false;
  EXPECT_EQ(AddOnAll({0, 1}), 2);
}

int CountEntries(const char* directory) {
  int count = 0;
  DIR* const dir = opendir(directory);
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

// Also amid operations.
TEST_F(ProcessSetsTest, Reset_WithSets_LeavesNothingAndTheNextWorldHasNone) {
  Start(2);
  const int threads = CountEntries("/proc/self/task"), fds = CountEntries("/proc/self/fd");
  for (int i = 0; i < 30; ++i) {
    const int32_t set = AddOnAll({0});
    EXPECT_EQ(set, 1);
    EXPECT_EQ(AddOnAll({1}), 2);
    if (i % 3 == 0) daemon_.Break("test");
    if (i % 3 == 1) daemon_.Change("test");
    OnEach([](int rank, Runtime& worker) {
      worker.Submit({Bare(OpKind::kBarrier)}, rank + 1).IgnoreError();
      ASSERT_EQ(worker.Reset(), absl::OkStatus());
      EXPECT_EQ(RunOn(worker, 1, Bare(OpKind::kBarrier)).code(),
                absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(SumOfRanks(worker, 0), 1);
    });
  }
  EXPECT_EQ(CountEntries("/proc/self/task"), threads);
  EXPECT_EQ(CountEntries("/proc/self/fd"), fds);
}

}  // namespace
}  // namespace hvd
