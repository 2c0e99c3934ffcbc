// Failures of NCCL, and how they are reported.
#include <memory>
#include <string>
#include <thread>  // NOLINT: for Abort from elsewhere
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/testing/nccl_test_util.h"
#include "gmock/gmock.h"

namespace hvd::collectives::nccl {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

template <typename F>
FakeGpu::Faults With(F&& change) {
  FakeGpu::Faults faults;
  change(faults);
  return faults;
}

TEST_F(NcclTest, Connect_WithoutTheLibrary_AllRanksLearnWhy) {
  const absl::StatusOr<GpuLibraries> absent = absl::UnimplementedError("no libnccl.so.2 anywhere");
  const auto lacking = MakeNcclBackend(absent, {});
  conformance::KeyExchangeTable keys(2);
  conformance::ForEachRank(2, [&](int rank) {
    const auto connected =
        (rank == 0 ? *backend_ : *lacking)
            .Connect({Epoch(1), rank, 2, "", "secret"}, 0, *keys.ForRank(rank), absl::Seconds(60));
    EXPECT_EQ(connected.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(Text(connected.status()), HasSubstr("rank 1 can't use NCCL: no libnccl.so.2"));
  });
}

TEST_F(NcclTest, Connect_NoSuchDevice_AllRanksLearnIt) {
  first_device_ = 7;  // of 8
  for (const absl::Status& status : TryConnect(2)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(Text(status),
                HasSubstr("rank 1 can't use NCCL: there is no CUDA device 8 among 8"));
  }
}

// Connects one communicator per rank, staged if necessary; returns the reasons or errors by rank.
std::vector<std::string> ConnectByHost(DeviceBackend& backend, absl::Span<const int> devices) {
  const int size = static_cast<int>(devices.size());
  conformance::RankGroup hosts(inproc::MakeInprocBackend());
  hosts.Connect(size);
  std::vector<std::string> notes(size);
  hosts.Run([&](Communicator& host) {
    const int rank = host.rank();
    const auto connected = ConnectDevices(backend, {Epoch(1), rank, size, "", "secret"},
                                          devices[rank], host, absl::Seconds(60), &notes[rank]);
    if (!connected.ok()) {
      notes[rank] = connected.status().ToString();
      return;
    }
    float value = 1;
    EXPECT_EQ((*connected)
                  ->AllReduceScaled({Piece{&value, &value, 1}}, DataType::kFloat32, ReduceOp::kSum,
                                    0.5, kPatient),
              absl::OkStatus());
    EXPECT_EQ(value, 0.5f * size);
  });
  return notes;
}

TEST_F(NcclTest, ConnectDevices_DirectlyIfThatCanBe) {
  EXPECT_THAT(ConnectByHost(*backend_, {0, 1, 2}), Each(""));
  EXPECT_GT(FakeGpu::calls("ncclGroupEnd"), 0);
}

TEST_F(NcclTest, ConnectDevices_OneGpuForTwoRanks_ByWayOfTheHost) {
  EXPECT_THAT(ConnectByHost(*backend_, {0, 1, 0}),
              Each(HasSubstr("ranks 0 and 2 use the same GPU")));
  EXPECT_EQ(FakeGpu::calls("ncclCommInitRankConfig"), 0);
}

TEST_F(NcclTest, ConnectDevices_NoNccl_ByWayOfTheHost) {
  absl::StatusOr<GpuLibraries> libraries = FakeGpu::Libraries();
  libraries->nccl_version = 0;
  libraries->nccl_status = absl::UnimplementedError("no libnccl.so.2 anywhere");
  EXPECT_THAT(ConnectByHost(*MakeNcclBackend(libraries, {}), {0, 1}),
              Each(HasSubstr("rank 0 can't use NCCL: no libnccl.so.2 anywhere")));
}

TEST_F(NcclTest, ConnectDevices_OneGpuForTwoRanks_DirectlyIfNcclAllowsIt) {
  absl::StatusOr<GpuLibraries> libraries = FakeGpu::Libraries();
  const NcclEnvironment told{"", /*shares_gpus=*/true};
  for (const auto& [version, note] :
       {std::pair(22907, "ranks 0 and 2 use the same GPU"), std::pair(23003, "")}) {
    libraries->nccl_version = version;
    EXPECT_THAT(ConnectByHost(*MakeNcclBackend(libraries, told), {0, 1, 0}), Each(HasSubstr(note)));
    EXPECT_EQ(FakeGpu::calls("ncclCommInitRankConfig"), version < 23000 ? 0 : 3);
  }
  EXPECT_THAT(ConnectByHost(*MakeNcclBackend(libraries, told), {0, 1, 0}), Each(""));
}

TEST_F(NcclTest, ConnectDevices_TurnedOffOnOneRank_ByWayOfTheHostOnAll) {
  const auto off = MakeNcclBackend(FakeGpu::Libraries(), {"", false, false, /*is_off=*/true});
  EXPECT_THAT(ConnectByHost(*off, {0, 1}),
              Each(HasSubstr("rank 0 can't use NCCL: HOROVOD_GPU_OPERATIONS=HOST is set there")));
  EXPECT_EQ(FakeGpu::calls("ncclGetUniqueId"), 0);
}

// All ranks do the same, whichever of them has failed.
TEST_F(NcclTest, ConnectDevices_InitialisingFails_ByWayOfTheHost) {
  for (const int rank : {-1, 0, 1}) {
    FakeGpu::Set(With([&](FakeGpu::Faults& f) {
      f.init_error = NcclResult::kSystemError;
      f.init_error_rank = rank;
    }));
    const std::string who = absl::StrCat("(nccl, rank ", rank < 0 ? 0 : rank, " of 3");
    EXPECT_THAT(ConnectByHost(*backend_, {0, 1, 2}),
                Each(AllOf(HasSubstr(who), HasSubstr("making a communicator: a fake error"),
                           testing::Not(HasSubstr("UNIMPLEMENTED")))));
  }
}

TEST_F(NcclTest, ConnectDevices_InitialisingFails_NothingElseIsAllowed) {
  FakeGpu::Set(With([&](FakeGpu::Faults& f) { f.init_error = NcclResult::kSystemError; }));
  const auto only = MakeNcclBackend(FakeGpu::Libraries(), {"", false, /*is_only_way=*/true});
  EXPECT_THAT(ConnectByHost(*only, {0, 1}),
              Each(AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("rank 0 can't use its device: "),
                         HasSubstr("making a communicator: a fake error"))));
}

TEST_F(NcclTest, ConnectDevices_NoDeviceOnOneRank_FailsOnAll) {
  EXPECT_THAT(ConnectByHost(*backend_, {0, 99}),
              Each(AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("rank 1 can't use its device: "),
                         HasSubstr("there is no CUDA device 99"))));
}

TEST_F(NcclTest, Connect_NeverEnds_TheDeadlineDoes) {
  FakeGpu::Set(With([](FakeGpu::Faults& f) { f.init_never_ends = true; }));
  for (const absl::Status& status : TryConnect(2, absl::Milliseconds(50))) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 2);
}

TEST_F(NcclTest, Connect_Cancelled) {
  FakeGpu::Set(With([](FakeGpu::Faults& f) { f.init_never_ends = true; }));
  Cancellation cancellation;
  cancellation.Cancel(absl::AbortedError("not wanted any more"));
  for (const absl::Status& status : TryConnect(2, absl::Seconds(60), &cancellation)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(Text(status), HasSubstr("not wanted any more"));
  }
}

TEST_F(NcclTest, Leaving_IsInOrder) {
  Connect(3);
  FakeGpu::Reset();
  ranks_.clear();
  EXPECT_EQ(FakeGpu::calls("ncclCommFinalize"), 3);
  EXPECT_EQ(FakeGpu::calls("ncclCommDestroy"), 3);
  EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 0);
}

TEST_F(NcclTest, Leaving_WhenPeersDontLetGo_IsBounded) {
  Connect(2);
  FakeGpu::Set(With([](FakeGpu::Faults& f) { f.finalize_never_ends = true; }));
  ranks_.clear();
  EXPECT_EQ(FakeGpu::calls("ncclCommDestroy"), 0);
  EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 2);
}

TEST_F(NcclTest, AsyncError_EndsWhatHangs) {
  const std::pair<NcclResult, absl::StatusCode> cases[] = {
      {NcclResult::kRemoteError, absl::StatusCode::kUnavailable},
      {NcclResult::kInternalError, absl::StatusCode::kInternal}};
  for (const auto& [error, code] : cases) {
    Connect(2);
    FakeGpu::Set(With([error = error](FakeGpu::Faults& f) {
      f.operations_never_end = true;
      f.async_error = error;
    }));
    for (const absl::Status& status : AllReduce()) {
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(Text(status), AllOf(HasSubstr("allreduce (call 1; nccl, rank "),
                                      HasSubstr("a fake error (with a detail)")));
    }
    EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 2);
    FakeGpu::Reset();
    for (const absl::Status& status : AllReduce()) EXPECT_EQ(status.code(), code) << "and stays";
  }
}

// Only the root of a broadcast copies its tensor first, and only a rank that has joined copies
// neutral elements.
TEST_F(NcclTest, CallNumber_IsTheSameOnAllRanksAlthoughOneHasCopied) {
  Connect(2);
  float from = 1, to = 0;
  ASSERT_EQ(ranks_[0]->CopyOnDevice(&to, &from, sizeof(to), kPatient), absl::OkStatus());
  FakeGpu::Set(With([](FakeGpu::Faults& f) { f.call_error = NcclResult::kInvalidUsage; }));
  for (const absl::Status& status : AllReduce()) {
    EXPECT_THAT(Text(status), HasSubstr("allreduce (call 1; nccl, rank "));
  }
}

TEST_F(NcclTest, CallFails_BreaksTheCommunicator) {
  Connect(2);
  FakeGpu::Set(With([](FakeGpu::Faults& f) { f.call_error = NcclResult::kInvalidUsage; }));
  for (const absl::Status& status : AllReduce()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  }
}

TEST_F(NcclTest, Hang_TheDeadlineEndsIt) {
  for (const bool enqueued : {false, true}) {
    Connect(1);
    FakeGpu::Set(With([&](FakeGpu::Faults& f) {
      f.operations_never_end = enqueued;
      f.calls_stay_in_progress = !enqueued;
    }));
    EXPECT_EQ(AllReduce(kHasty)[0].code(), absl::StatusCode::kDeadlineExceeded);
    FakeGpu::Reset();
  }
}

// The call returns only because its communicator is aborted meanwhile.
TEST_F(NcclTest, StuckCall_IsAborted) {
  Connect(1);
  FakeGpu::Set(With([](FakeGpu::Faults& f) { f.group_end_blocks = true; }));
  std::thread aborter([&] { ranks_[0]->Abort("enough"); });
  EXPECT_EQ(AllReduce()[0], absl::AbortedError("enough"));
  aborter.join();
}

TEST_F(NcclTest, BlockingAbort_DoesNotBlockTheCaller) {
  backend_ = MakeNcclBackend(FakeGpu::Libraries(), {}, Limits(absl::Milliseconds(50)));
  Connect(2);
  FakeGpu::Set(With([](FakeGpu::Faults& f) {
    f.operations_never_end = true;
    f.abort_blocks = true;
  }));
  for (const absl::Status& status : AllReduce(kHasty)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  ranks_[0]->Abort("later");
  ranks_.clear();
  EXPECT_EQ(FakeGpu::communicators(), 2) << "they are still being aborted";
  // The next epoch's communicators are unaffected.
  FakeGpu::Set(With([](FakeGpu::Faults& f) { f.abort_blocks = true; }));
  Connect(2);
  for (const absl::Status& status : AllReduce()) EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(NcclTest, Abort_ThenANewEpoch) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    Connect(3);
    for (const absl::Status& status : AllReduce()) EXPECT_EQ(status, absl::OkStatus());
    FakeGpu::Set(With([](FakeGpu::Faults& f) { f.operations_never_end = true; }));
    std::thread aborter([&] {
      for (auto& rank : ranks_) rank->Abort("the world has changed");
    });
    for (const absl::Status& status : AllReduce()) {
      // Unless it has noticed a peer's abort first.
      EXPECT_TRUE(status == absl::AbortedError("the world has changed") ||
                  absl::IsUnavailable(status))
          << status;
    }
    aborter.join();
    FakeGpu::Reset();
  }
}

}  // namespace
}  // namespace hvd::collectives::nccl
