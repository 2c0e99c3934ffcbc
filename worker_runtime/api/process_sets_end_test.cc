// Tests of the ends of process sets: removal, failure, and the end of their world.
#include <dirent.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/testing/process_sets_fixture.h"

namespace hvd::worker_runtime::api {
namespace {

using ::testing::HasSubstr;

TEST_F(ProcessSetsTest, Remove_FailsPendingOperationsOfTheSet_AndNeverReusesItsId) {
  StartWorkers(2);
  const int32_t set = AddOnAll({0}), other = AddOnAll({1});
  OnEach([&](int rank, Runtime& worker) {
    // Needs no other rank, but may not have begun yet.
    const auto handle = rank == 0 ? worker.Submit({Bare(negotiation::OpKind::kBarrier)}, set)
                                  : absl::StatusOr<int64_t>(0);
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
      EXPECT_EQ(RunOn(worker, Bare(negotiation::OpKind::kBarrier), set).code(),
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
  StartWorkers(3);
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
  StartWorkers(3);
  const int32_t broken = AddOnAll({0, 1}), other = AddOnAll({0, 2});
  absl::Barrier* const all_wait = new absl::Barrier(3);
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> data{1}, more{1};
    // Rank 1 submits neither operation.
    const auto in_world =
        rank == 1 ? absl::StatusOr<int64_t>(0) : worker.Submit({AllReduceOf(data)});
    const auto in_set = rank == 0 ? worker.Submit({AllReduceOf(more)}, other) : in_world;
    ASSERT_TRUE(in_world.ok() && in_set.ok());
    if (all_wait->Block()) delete all_wait;
    if (rank == 1) {
      std::vector<negotiation::SignaturePtr> requests{
          std::make_shared<const negotiation::TensorSignature>(
              Bare(negotiation::OpKind::kBarrier))};
      (*worker.active()->process_sets().Prepare(broken, requests))
          ->Abort(absl::UnavailableError("the cable was cut"));
      EXPECT_THAT(Message(RunOn(worker, Bare(negotiation::OpKind::kBarrier), broken)),
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
  StartWorkers(3);
  const int32_t set = AddOnAll({0, 1});
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> data{1};
    if (rank == 1) {
      EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
    } else if (rank == 0) {
      const absl::Status status = RunOn(worker, AllReduceOf(data), set);
      EXPECT_THAT(Message(status), HasSubstr("Horovod has been shut down"));
    } else {
      // A registration, too.
      int32_t id;
      EXPECT_EQ(Add(worker, {0, 2}, &id).code(), absl::StatusCode::kAborted);
    }
  });
}

// The end of a script: an operation complete on one rank must complete on all, whichever rank
// leaves first.
TEST_F(ProcessSetsTest, Shutdown_AfterABarrier_BreaksNobodysBarrier) {
  for (int round = 0; round < 20; ++round) {
    workers_.clear();
    StartWorkers(3);
    const int32_t set = AddOnAll({0, 2}), other = AddOnAll({0, 1});
    OnEach([&](int rank, Runtime& worker) {
      if (rank != 1) {
        EXPECT_EQ(SumOfRanks(worker, set), 2);
      }
      if (rank != 2) {
        EXPECT_EQ(SumOfRanks(worker, other), 1);
      }
      EXPECT_EQ(RunOn(worker, Bare(negotiation::OpKind::kBarrier), 0), absl::OkStatus());
      EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
    });
  }
}

int CountEntries(const char* directory) {
  int count = 0;
  DIR* const dir = opendir(directory);
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

// The same in the middle of operations.
TEST_F(ProcessSetsTest, Reset_WithSets_LeavesNothingAndTheNextWorldHasNone) {
  StartWorkers(2);
  const int threads = CountEntries("/proc/self/task"), fds = CountEntries("/proc/self/fd");
  for (int i = 0; i < 30; ++i) {
    const int32_t set = AddOnAll({0});
    EXPECT_EQ(set, 1);
    EXPECT_EQ(AddOnAll({1}), 2);
    if (i % 3 == 0) daemon_.Break("test");
    if (i % 3 == 1) daemon_.Change("test");
    OnEach([](int rank, Runtime& worker) {
      worker.Submit({Bare(negotiation::OpKind::kBarrier)}, rank + 1).IgnoreError();
      ASSERT_EQ(worker.Reset(), absl::OkStatus());
      EXPECT_EQ(RunOn(worker, Bare(negotiation::OpKind::kBarrier), 1).code(),
                absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(SumOfRanks(worker, 0), 1);
    });
  }
  // The kernel lists a thread for a moment longer than it can be joined.
  while (CountEntries("/proc/self/task") > threads) std::this_thread::yield();
  EXPECT_EQ(CountEntries("/proc/self/fd"), fds);
}

}  // namespace
}  // namespace hvd::worker_runtime::api
