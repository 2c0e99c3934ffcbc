#include "collectives/nccl/comm_state.h"

#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

using State = CommState::State;

const absl::Status kAbort = absl::AbortedError("enough");
const absl::Status kError = absl::UnavailableError("a peer is gone");

CommState Idle() {
  CommState life;
  EXPECT_EQ(life.Connected(), absl::OkStatus());
  return life;
}

TEST(CommState, Operations_ComeAndGo) {
  CommState life = Idle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(life.state(), State::kIdle);
    EXPECT_EQ(life.Begin(), absl::OkStatus());
    EXPECT_EQ(life.state(), State::kBusy);
    EXPECT_TRUE(life.EnterCall());
    life.LeaveCall();
    EXPECT_EQ(life.Succeed(), absl::OkStatus());
  }
}

TEST(CommState, Begin_OutOfTurn_IsABug) {
  CommState life;
  EXPECT_EQ(life.Begin().code(), absl::StatusCode::kInternal);
  life = Idle();
  EXPECT_EQ(life.Begin(), absl::OkStatus());
  EXPECT_EQ(life.Begin().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(life.status(), absl::OkStatus());
}

TEST(CommState, Break_Twice_KeepsTheFirstReasonAndClosesOnce) {
  for (const bool busy : {false, true}) {
    CommState life = Idle();
    if (busy) {
      EXPECT_EQ(life.Begin(), absl::OkStatus());
    }
    EXPECT_TRUE(life.Break(kAbort));
    EXPECT_FALSE(life.Break(kError));
    EXPECT_EQ(life.state(), State::kClosing);
    EXPECT_EQ(life.status(), kAbort);
    EXPECT_EQ(life.Succeed(), kAbort);
    EXPECT_EQ(life.Begin(), kAbort);
    life.Closed();
    EXPECT_FALSE(life.Break(kError));
    EXPECT_EQ(life.Begin(), kAbort);
    EXPECT_EQ(life.state(), State::kClosed);
  }
}

TEST(CommState, Break_WhileConnecting_ConnectingFails) {
  CommState life;
  EXPECT_TRUE(life.Break(kError));
  EXPECT_EQ(life.Connected(), kError);
  EXPECT_EQ(life.state(), State::kClosing);
}

TEST(CommState, EnterCall_NotOnceItCloses) {
  CommState life;
  EXPECT_TRUE(life.EnterCall()) << "connecting is a call";
  EXPECT_TRUE(life.in_call());
  life.Break(kError);
  EXPECT_TRUE(life.in_call()) << "the closer has to wait for it";
  life.LeaveCall();
  EXPECT_FALSE(life.in_call());
  EXPECT_FALSE(life.EnterCall());
  life.Closed();
  EXPECT_FALSE(life.EnterCall());
  EXPECT_FALSE(life.in_call());
}

TEST(CommState, Leave_OnlyInGoodOrder) {
  CommState life = Idle();
  EXPECT_TRUE(life.Leave());
  EXPECT_FALSE(life.Leave());
  EXPECT_FALSE(life.Break(kAbort));
  EXPECT_EQ(life.Begin().code(), absl::StatusCode::kFailedPrecondition);

  life = Idle();
  life.Break(kError);
  EXPECT_FALSE(life.Leave());
  EXPECT_EQ(life.status(), kError);
}

TEST(CommState, States_HaveNames) {
  EXPECT_EQ(NameOf(State::kConnecting), "connecting");
  EXPECT_EQ(NameOf(State::kClosed), "closed");
}

}  // namespace
}  // namespace hvd::collectives::nccl
