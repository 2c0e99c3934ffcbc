// A NCCL whose calls wait for peers even though its communicators are configured as non-blocking.
#include <memory>

#include "collectives/nccl/testing/nccl_test_util.h"
#include "gmock/gmock.h"

namespace hvd::collectives::nccl {
namespace {

using testing::HasSubstr;

class NcclBlockingTest : public NcclTest {
 protected:
  NcclBlockingTest() {
    NcclBounds limits = Limits();
    limits.stuck_call = absl::Milliseconds(20);
    backend_ = MakeNcclBackend(FakeGpu::Libraries(), {}, limits);
  }
  void SetUp() override { Set({}); }

  static void Set(FakeGpu::Faults faults) {
    faults.calls_block = true;
    FakeGpu::Set(faults);
  }
  absl::Status AllReduceOf(int rank, const CallOptions& options) {
    float one = 1;
    return ranks_[rank]->AllReduce(&one, &one, 1, DataType::kFloat32, ReduceOp::kSum, options);
  }
};

TEST_F(NcclBlockingTest, Works) {
  Connect(3);
  for (int i = 0; i < 3; ++i) {
    for (const absl::Status& status : AllReduce()) EXPECT_EQ(status, absl::OkStatus());
  }
}

TEST_F(NcclBlockingTest, Initialising_TheDeadlineEndsIt) {
  FakeGpu::Faults faults;
  faults.init_never_ends = true;
  Set(faults);
  for (const absl::Status& status : TryConnect(2, absl::Milliseconds(20))) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 2) << "which is what ended the calls";
}

TEST_F(NcclBlockingTest, Initialising_Cancelled) {
  FakeGpu::Faults faults;
  faults.init_never_ends = true;
  Set(faults);
  Cancellation cancellation;
  cancellation.Cancel(absl::AbortedError("not wanted any more"));
  for (const absl::Status& status : TryConnect(2, absl::Seconds(60), &cancellation)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  }
}

TEST_F(NcclBlockingTest, InitialisingCantBeAborted_DoesNotBlock_AndEndsLater) {
  FakeGpu::Faults faults;
  faults.init_never_ends = true;
  faults.init_shows_nothing = true;
  Set(faults);
  for (const absl::Status& status : TryConnect(2, absl::Milliseconds(20))) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 0);
  FakeGpu::Reset();
  FakeGpu::AwaitNothingLeft();
}

TEST_F(NcclBlockingTest, Operation_TheDeadlineEndsIt) {
  Connect(2);
  const absl::Status alone = AllReduceOf(0, kHasty);
  EXPECT_EQ(alone.code(), absl::StatusCode::kDeadlineExceeded) << alone;
  EXPECT_THAT(Text(alone), HasSubstr("a call of NCCL has not returned in time"));
  EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 1);
}

TEST_F(NcclBlockingTest, Operation_AfterOthersOfMoreTime_TheDeadlineEndsIt) {
  Connect(2);
  for (int i = 0; i < 3; ++i) {
    for (const absl::Status& status : AllReduce()) EXPECT_EQ(status, absl::OkStatus());
  }
  EXPECT_EQ(AllReduceOf(1, kHasty).code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace hvd::collectives::nccl
