// The life of one NCCL communicator as a state machine: who may touch it when, and what was the
// first thing that went wrong.
#ifndef COLLECTIVES_NCCL_COMM_STATE_H_
#define COLLECTIVES_NCCL_COMM_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::collectives::nccl {

// NCCL frees a communicator when it is aborted or destroyed, so nobody may be about to call it
// then. A thread that calls it says so (EnterCall, LeaveCall); one other thread, the closer, ends
// it when no call is under way. A call that doesn't return is no reason to wait for ever: being
// aborted is what makes it return.
//
//   connecting --Connected--> idle --Begin--> busy --Succeed--> idle
//   connecting, idle, busy --Break--> closing --Closed--> closed
//   idle --Leave--> closing
//
// Pure: no lock, thread or clock. Its owner serialises the calls.
class NcclLife {
 public:
  enum class State { kConnecting, kIdle, kBusy, kClosing, kClosed };

  State state() const { return state_; }
  // OK as long as nothing has gone wrong; the first reason stays.
  const absl::Status& status() const { return status_; }

  // All ranks are there.   The first reason, if something has gone wrong meanwhile.
  absl::Status Connected();

  // An operation starts.   The first reason why it can't.
  absl::Status Begin();
  // It is done.   The first reason, if something has gone wrong meanwhile.
  absl::Status Succeed();

  // Something has gone wrong. Whether it is the first thing: then the caller sees to it that the
  // closer aborts the communicator.   REQUIRES: !why.ok()
  bool Break(const absl::Status& why);
  // The owner has no more use for it. Whether it is in good order, so that the closer may end it
  // gently; otherwise it is being closed already.
  bool Leave();
  // The closer has ended it, or has given up on that.
  void Closed();

  // Whether a call may be made now.
  bool EnterCall();
  void LeaveCall();
  bool in_call() const { return in_call_; }

 private:
  State state_ = State::kConnecting;
  absl::Status status_;
  bool in_call_ = false;
};

absl::string_view NameOf(NcclLife::State state);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_COMM_STATE_H_
