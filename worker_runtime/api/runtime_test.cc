#include "worker_runtime/api/runtime.h"

#include <dirent.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/settings/runtime_env.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/tcp/tcp_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/testing/runtime_fixture.h"

namespace hvd::worker_runtime::api {
namespace {

using RuntimeTest = WorkersTest;

// Returns the result of an all-reduce of ones; 0 if it fails.
float CountRanks(Runtime& worker) {
  std::vector<float> ones{1};
  return RunOn(worker, Request(negotiation::OpKind::kAllReduce, "ones", &ones)).ok() ? ones[0] : 0;
}

int CountEntries(const char* directory) {
  int count = 0;
  DIR* const dir = opendir(directory);
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

TEST_F(RuntimeTest, Init_AllAsk_WorldComesUp) {
  OnEach(2, [](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    EXPECT_EQ(worker.place()->rank, rank);
    EXPECT_EQ(worker.place()->size, 2);
    EXPECT_FALSE(worker.is_deferred());
    EXPECT_EQ(CountRanks(worker), 2);
    EXPECT_EQ(worker.Init(), absl::OkStatus());
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
    EXPECT_FALSE(worker.place().has_value());
  });
  for (const auto& join : daemon_.joins()) EXPECT_TRUE(join.may_defer());
  EXPECT_EQ(daemon_.reports().size(), 2u);
}

TEST_F(RuntimeTest, Liveness_FromInitToShutdown_IsBusy) {
  os::LivenessPage agents = os::LivenessPage::Create().value();
  os::LivenessPage own = os::LivenessPage::Map(Fd(dup(agents.fd()))).value();
  ASSERT_TRUE(own.HoldForever().ok());
  Runtime worker(env_, NewSession(kFirstWorker), collectives::tcp::MakeTcpBackend(),
                 std::move(own));
  daemon_.SetSize(1);
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(agents.busy());
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    EXPECT_TRUE(agents.busy());
    ASSERT_EQ(worker.Shutdown(), absl::OkStatus());
  }
  EXPECT_FALSE(agents.busy());
}

// Otherwise its user would believe that the data is encrypted.
TEST_F(RuntimeTest, Init_EncryptionOnOneRankOnly_IsRefused) {
  env_.encrypt_data = true;
  daemon_.SetSize(1);
  const absl::Status status = NewWorker(kFirstWorker)->Init();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "--encrypt-data")) << status;
}

TEST_F(RuntimeTest, Reset_EpochBroken_NextWorldWorksAndNobodyHasFinished) {
  OnEach(2, [](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  daemon_.Break("rank 1 was killed");
  OnEach(2, [](int, Runtime& worker) {
    std::vector<float> data{1};
    // Until the change is known here, at the latest by the other rank's reset.
    while (CountRanks(worker) == 2) {
    }
    worker.SetCommit(41);
    ASSERT_EQ(worker.Reset(), absl::OkStatus());
    EXPECT_EQ(worker.active()->world().epoch, Epoch(2));
    EXPECT_FALSE(worker.active()->changing());
    EXPECT_EQ(CountRanks(worker), 2);
  });
  EXPECT_TRUE(daemon_.reports().empty());
  EXPECT_EQ(daemon_.joins().back().last_epoch(), 1u);
  EXPECT_EQ(daemon_.joins().back().commit(), 41u);
  EXPECT_FALSE(daemon_.joins().back().may_defer());
}

settings::RuntimeEnv DebugEnv() {
  settings::RuntimeEnv env;
  env.log_level = "debug";
  env.log_hide_time = true;
  return env;
}

TEST_F(RuntimeTest, Reset_AtLevelDebug_SaysWhatBecomesOfTheWorlds) {
  Runtime worker(DebugEnv(), nullptr, collectives::inproc::MakeInprocBackend());
  testing::internal::CaptureStderr();
  ASSERT_EQ(worker.Init(), absl::OkStatus());
  ASSERT_EQ(worker.Reset(), absl::OkStatus());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "horovod[0] debug: world 1: has 1 rank\n"
            "horovod[0] debug: world 1: connected\n"
            "horovod[0] debug: world 1: left\n"
            "horovod[0] debug: world 2: has 1 rank\n"
            "horovod[0] debug: world 2: connected\n");
}

TEST_F(RuntimeTest, Submit_EpochBrokenAtLevelDebug_WasSaidBeforeItFails) {
  daemon_.SetSize(1);
  Runtime worker(DebugEnv(), NewSession(kFirstWorker), collectives::inproc::MakeInprocBackend());
  testing::internal::CaptureStderr();
  ASSERT_EQ(worker.Init(), absl::OkStatus());
  daemon_.Break("host b was lost");
  while (RunOn(worker, Request(negotiation::OpKind::kBarrier, "b")).ok()) {
  }
  EXPECT_TRUE(absl::StrContains(testing::internal::GetCapturedStderr(),
                                "horovod[0] debug: world 1: broken: host b was lost\n"));
}

TEST_F(RuntimeTest, Commit_WorldIsChanging_AllHearItAtTheSameCommitAndNothingFails) {
  OnEach(2, [](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  constexpr int kWorlds = 20;
  std::vector<int> commits[2];
  for (int world = 0; world < kWorlds; ++world) {
    std::thread change([&] { daemon_.Change("a host has come"); });
    OnEach(2, [&](int rank, Runtime& worker) {
      int commit = 0;
      for (bool changing = false; !changing; ++commit) {
        ASSERT_EQ(CountRanks(worker), 2);
        ASSERT_EQ(RunOn(worker, Request(negotiation::OpKind::kCommit, "commit"), 0, &changing),
                  absl::OkStatus());
      }
      EXPECT_TRUE(worker.active()->changing());
      commits[rank].push_back(commit);
      ASSERT_EQ(worker.Reset(), absl::OkStatus());
    });
    change.join();
  }
  EXPECT_EQ(commits[0], commits[1]);
}

TEST_F(RuntimeTest, Init_MemberDiesWhileOthersConnect_TheyAreInTheNextWorld) {
  daemon_.SetSize(3);
  std::thread dying([&] {
    // It asks for a world and is never seen again.
    pb::JoinWorldRequest request;
    request.mutable_worker()->set_worker_id(1);
    request.set_address("127.0.0.1");
    request.set_port(1);
    EXPECT_TRUE(daemon_.NewClients()()->JoinWorld(request, absl::InfiniteDuration()).ok());
    daemon_.AwaitExchanges(2);
    daemon_.Break("worker 1 was killed");
    daemon_.SetSize(2);
  });
  OnEach(2, [](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    EXPECT_EQ(worker.place()->rank, rank);
    EXPECT_EQ(CountRanks(worker), 2);
  });
  dying.join();
}

// A process that was killed: it answers nothing any more, and its connections are open as long as
// the kernel is busy freeing its memory.
TEST_F(RuntimeTest, Reset_DeadMembersConnectionsAreStillOpen_NobodyWaitsForThem) {
  daemon_.SetSize(3);
  std::unique_ptr<collectives::Backend> backend = collectives::tcp::MakeTcpBackend();
  std::unique_ptr<collectives::Communicator> communicator;
  std::unique_ptr<control::ControlChannel> control;
  std::thread dying([&] {
    session::Session session({WorkerId(kFirstWorker + 2), "127.0.0.1", true, absl::ZeroDuration()},
                             Incarnation(1), daemon_.NewClients());
    const auto port = *collectives::peer::PeerPort::Open("127.0.0.1");
    pb::JoinWorldRequest request;
    request.set_port(port->number());
    request.set_may_defer(true);
    const auto answer = session.JoinNextWorld(request, absl::Minutes(1));
    const auto world = std::get<session::WorkerWorld>(*answer);
    const collectives::GroupInfo group{world.epoch,  world.rank(), 3, "127.0.0.1",
                                       world.secret, nullptr,      0, port};
    communicator = *backend->Connect(group, *session.NewKeyExchange(world.epoch), absl::Minutes(1));
    control =
        *control::ControlChannel::Connect(group, "127.0.0.1", world.root.port, absl::Minutes(1));
  });
  OnEach(2, [](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  dying.join();
  std::thread news([&] {
    daemon_.Break("worker 12 was killed");
    daemon_.SetSize(2);
  });
  OnEach(2, [](int, Runtime& worker) {
    EXPECT_EQ(CountRanks(worker), 0);
    ASSERT_EQ(worker.Reset(), absl::OkStatus());
    EXPECT_EQ(CountRanks(worker), 2);
  });
  news.join();
}

TEST_F(RuntimeTest, Init_Deferred_FirstOperationJoins) {
  pb::JoinWorldResponse deferred;
  pb::Placement* place = deferred.mutable_deferred()->mutable_member()->mutable_placement();
  place->set_size(7);
  place->set_rank(5);
  place->set_local_rank(3);
  daemon_.AnswerNextJoin(kFirstWorker, deferred);
  OnEach(2, [](int rank, Runtime& worker) {
    if (rank == 0) {
      ASSERT_EQ(worker.Init(), absl::OkStatus());
      EXPECT_TRUE(worker.is_deferred());
      EXPECT_EQ(worker.place()->rank, 5);
      EXPECT_EQ(worker.place()->size, 7);
      EXPECT_EQ(worker.place()->local_rank, 3);
      EXPECT_EQ(worker.active(), nullptr);
      EXPECT_EQ(worker.Init(), absl::OkStatus());
    } else {
      ASSERT_EQ(worker.Init(), absl::OkStatus());
    }
    EXPECT_EQ(CountRanks(worker), 2);
    EXPECT_FALSE(worker.is_deferred());
    EXPECT_EQ(worker.JoinWorld(), absl::OkStatus());
  });
}

// What the members of the world do first, the newcomer does first, too.
TEST_F(RuntimeTest, Init_Deferred_FirstOperationCallsWhatJoins) {
  pb::JoinWorldResponse deferred;
  deferred.mutable_deferred()->mutable_member()->mutable_placement()->set_size(2);
  daemon_.AnswerNextJoin(kFirstWorker, deferred);
  static Runtime* newcomer;
  static int calls;
  calls = 0;
  OnEach(2, [](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    if (rank == 0) {
      newcomer = &worker;
      worker.SetJoin([] {
        ++calls;
        EXPECT_EQ(newcomer->JoinWorld(), absl::OkStatus());
        EXPECT_EQ(CountRanks(*newcomer), 2);
      });
    } else {
      EXPECT_EQ(CountRanks(worker), 2);
    }
    EXPECT_EQ(CountRanks(worker), 2);
    EXPECT_EQ(CountRanks(worker), 2);
  });
  EXPECT_EQ(calls, 1);
}

TEST_F(RuntimeTest, Init_Deferred_JoinFails_OperationFailsAndJoinsNothing) {
  pb::JoinWorldResponse deferred;
  deferred.mutable_deferred()->mutable_member()->mutable_placement()->set_size(2);
  daemon_.AnswerNextJoin(kFirstWorker, deferred);
  OnEach(1, [](int, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    worker.SetJoin([] {});
    std::vector<float> data{1};
    const absl::Status status =
        RunOn(worker, Request(negotiation::OpKind::kAllReduce, "data", &data));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(worker.is_deferred());
  });
}

TEST_F(RuntimeTest, Released_StaysReleased) {
  OnEach(2, [](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  pb::JoinWorldResponse released;
  released.mutable_released()->set_reason("host b leaves");
  for (int i : {0, 1}) daemon_.AnswerNextJoin(kFirstWorker + i, released);
  OnEach(2, [](int, Runtime& worker) {
    const absl::Status status = worker.Reset();
    EXPECT_TRUE(IsReleased(status));
    EXPECT_TRUE(absl::StrContains(status.message(), "host b leaves"));
    EXPECT_TRUE(IsReleased(worker.Init()));
    EXPECT_TRUE(IsReleased(worker.JoinWorld()));
    EXPECT_TRUE(IsReleased(worker.Submit({Request(negotiation::OpKind::kBarrier, "b")}).status()));
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  });
  EXPECT_TRUE(daemon_.reports().empty());
}

TEST_F(RuntimeTest, Finish_SeveralHandles_WaitsForAllAndForgetsThem) {
  OnEach(2, [](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    std::vector<float> a{1}, b(rank + 1, 1), c{1};
    std::vector<Runtime::Handle> handles;
    for (auto* data : {&a, &b, &c}) {
      const std::string name = absl::StrCat("t", handles.size());
      handles.push_back(*worker.Submit({Request(negotiation::OpKind::kAllReduce, name, data)}));
    }
    const absl::Status status = worker.Finish(handles);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;  // the shapes of b
    EXPECT_EQ(a[0], 2);
    EXPECT_EQ(c[0], 2);
    for (Runtime::Handle handle : handles) EXPECT_TRUE(absl::IsNotFound(worker.Wait(handle)));
    EXPECT_TRUE(absl::IsNotFound(worker.Finish({handles[0]})));
    EXPECT_TRUE(absl::IsNotFound(worker.Poll(handles[0]).status()));
    EXPECT_EQ(worker.Finish({}), absl::OkStatus());
  });
}

TEST_F(RuntimeTest, Submit_RankIsMissing_IsReportedToTheDaemon) {
  env_.engine.stall_warning_time = absl::Milliseconds(1);
  OnEach(2, [this](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    if (rank == 1) {
      const pb::ReportStallRequest stall = daemon_.AwaitStall("allreduce 'ones'");
      EXPECT_EQ(stall.epoch(), 1u);
      EXPECT_EQ(stall.worker().worker_id(), kFirstWorker);
      EXPECT_FALSE(stall.give_up());
      ASSERT_EQ(stall.waiting_size(), 1);
      EXPECT_THAT(stall.waiting(0).missing(), ::testing::ElementsAre(1));
    }
    EXPECT_EQ(CountRanks(worker), 2);
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  });
}

TEST_F(RuntimeTest, Submit_MemberOfASetIsMissing_ReportHasItsRankOfTheWorld) {
  env_.engine.stall_warning_time = absl::Milliseconds(1);
  daemon_.SetSize(3);
  OnEach(3, [this](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    int32_t id = 0;
    ASSERT_EQ(worker.active()->process_sets().Add({1, 2}, &id), absl::OkStatus());
    if (rank == 2) {
      const auto stall = daemon_.AwaitStall("allreduce 'ones' of process set 1");
      EXPECT_EQ(stall.worker().worker_id(), kFirstWorker + 1);
      EXPECT_THAT(stall.waiting(0).missing(), ::testing::ElementsAre(2));
    }
    if (rank > 0) {
      std::vector<float> ones{1};
      EXPECT_EQ(RunOn(worker, Request(negotiation::OpKind::kAllReduce, "ones", &ones), id),
                absl::OkStatus());
    }
    EXPECT_EQ(CountRanks(worker), 3);  // nobody leaves before the others are done
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  });
}

TEST_F(RuntimeTest, JoinWorld_NotInitialized_IsFailedPrecondition) {
  Runtime worker(settings::RuntimeEnv(), nullptr, collectives::inproc::MakeInprocBackend());
  EXPECT_EQ(worker.JoinWorld().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(worker.Submit({Request(negotiation::OpKind::kBarrier, "b")}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(worker.Init(), absl::OkStatus());
  EXPECT_EQ(CountRanks(worker), 1);
  ASSERT_EQ(worker.Reset(), absl::OkStatus());
  EXPECT_EQ(worker.active()->world().epoch, Epoch(2));
  EXPECT_TRUE(worker.active()->world().sync_state);
}

// Even if users don't release the handles of failed operations.
TEST_F(RuntimeTest, Reset_ManyTimes_LeavesNoThreadAndNoDescriptor) {
  OnEach(2, [](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  const int threads = CountEntries("/proc/self/task"), fds = CountEntries("/proc/self/fd");
  for (int i = 0; i < 100; ++i) {
    if (i % 3 == 0) daemon_.Break("test");
    OnEach(2, [](int rank, Runtime& worker) {
      // Rank 1 never submits it.
      if (rank == 0)
        worker.Submit({Request(negotiation::OpKind::kBarrier, "forgotten")}).IgnoreError();
      ASSERT_EQ(worker.Reset(), absl::OkStatus());
      ASSERT_EQ(CountRanks(worker), 2);
    });
  }
  // The kernel lists a thread for a moment longer than it can be joined.
  while (CountEntries("/proc/self/task") > threads) std::this_thread::yield();
  EXPECT_EQ(CountEntries("/proc/self/fd"), fds);
}

}  // namespace
}  // namespace hvd::worker_runtime::api
