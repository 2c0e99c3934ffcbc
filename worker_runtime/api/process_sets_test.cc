// Tests of adding and using process sets; process_sets_end_test.cc tests their ends.
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/settings/runtime_env.h"
#include "collectives/tcp/tcp_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/testing/process_sets_fixture.h"

namespace hvd::worker_runtime::api {
namespace {

using ::testing::HasSubstr;

TEST_F(ProcessSetsTest, Add_OverlappingSets_EachReducesAmongItsMembers) {
  StartWorkers(3);
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

// How many sockets of this process listen.
int Listening() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  int count = 0;
  for (int fd = 0; fd < static_cast<int>(files.rlim_cur); ++fd) {
    int listens = 0;
    socklen_t length = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0) count += listens;
  }
  return count;
}

TEST_F(ProcessSetsTest, AWorkerListensOnOnePort_AndOnNoneAfterItsWorld) {
  const int before = Listening();
  StartWorkers(3);
  EXPECT_EQ(Listening() - before, 3);
  AddOnAll({0, 1});
  AddOnAll({0, 2});
  EXPECT_EQ(Listening() - before, 3);
  OnEach([](int, Runtime& worker) { EXPECT_EQ(worker.Shutdown(), absl::OkStatus()); });
  EXPECT_EQ(Listening(), before);
}

TEST_F(ProcessSetsTest, Submit_OneSetWaitsForAMember_TheOthersGoOn) {
  StartWorkers(3);
  const int32_t slow = AddOnAll({0, 1}), quick = AddOnAll({0, 2});
  absl::Notification others_are_done;
  OnEach([&](int rank, Runtime& worker) {
    std::vector<float> data{1};
    if (rank == 1) {
      // The same name may be in flight in several sets.
      others_are_done.WaitForNotification();
      EXPECT_EQ(RunOn(worker, AllReduceOf(data), slow), absl::OkStatus());
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
  StartWorkers(2);
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
  StartWorkers(2);
  const int32_t set = AddOnAll({1});
  std::vector<float> data{1};
  Runtime& worker = *workers_[0];
  EXPECT_EQ(
      RunOn(worker, AllReduceOf(data), set),
      absl::InvalidArgumentError("Allreduce: rank 0 is not in process set 1, whose ranks are 1"));
  EXPECT_EQ(RunOn(worker, Bare(negotiation::OpKind::kBarrier), 7),
            absl::InvalidArgumentError(
                "Barrier: there is no process set 7 now; register it before it is used"));
  Runtime& member = *workers_[1];
  EXPECT_EQ(RunOn(member, Bare(negotiation::OpKind::kJoin), set),
            absl::InvalidArgumentError("Join is for the global process set only."));
  engine::TensorRequest broadcast = AllReduceOf(data);
  broadcast.op = negotiation::OpKind::kBroadcast;
  EXPECT_EQ(RunOn(member, broadcast, set),
            absl::InvalidArgumentError(
                "broadcast: root rank 0 is not in the process set, whose ranks are 1"));
}

TEST_F(ProcessSetsTest, Submit_Broadcast_RootIsARankOfTheWorld) {
  StartWorkers(3);
  const int32_t set = AddOnAll({1, 2});
  OnEach([&](int rank, Runtime& worker) {
    if (rank == 0) return;
    std::vector<float> data{static_cast<float>(rank)};
    engine::TensorRequest request = AllReduceOf(data);
    request.op = negotiation::OpKind::kBroadcast;
    request.root_rank = 2;
    EXPECT_EQ(RunOn(worker, request, set), absl::OkStatus());
    EXPECT_EQ(data[0], 2);
  });
}

TEST_F(ProcessSetsTest, Submit_Mismatch_SaysWhichRanksTheSetHasAndAllGoesOn) {
  StartWorkers(3);
  const int32_t set = AddOnAll({1, 2});
  OnEach([&](int rank, Runtime& worker) {
    if (rank > 0) {
      std::vector<float> data(rank, 1);
      const absl::Status status = RunOn(worker, AllReduceOf(data), set);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(Message(status), HasSubstr("rank 0 sent float32 [1]"));
      EXPECT_THAT(Message(status), HasSubstr("process set 1, which has the world's ranks 1 and 2"));
      EXPECT_EQ(SumOfRanks(worker, set), 3);
    }
    EXPECT_EQ(SumOfRanks(worker, 0), 3);
  });
}

// A backend whose connections fail when the test says so.
class FlakyBackend : public collectives::Backend {
 public:
  explicit FlakyBackend(const std::atomic<bool>& fails) : fails_(fails) {}
  absl::string_view name() const override { return "flaky"; }
  absl::StatusOr<std::unique_ptr<collectives::Communicator>> Connect(
      const collectives::GroupInfo& group, collectives::KeyExchange& keys,
      const WaitBounds& bounds) override {
    if (fails_) return absl::UnavailableError("no descriptors left");
    return real_->Connect(group, keys, bounds);
  }

 private:
  const std::atomic<bool>& fails_;
  const std::unique_ptr<collectives::Backend> real_ = collectives::tcp::MakeTcpBackend();
};

TEST_F(ProcessSetsTest, Add_AMemberCannotConnect_FailsOnAllRanksAndTheWorldGoesOn) {
  StartWorkers(3);
  std::atomic<bool> fails{false};
  workers_[1] = std::make_unique<Runtime>(env_, NewSession(kFirstWorker + 1),
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

}  // namespace
}  // namespace hvd::worker_runtime::api
