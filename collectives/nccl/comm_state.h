// The life of one NCCL communicator as a state machine: which thread may use it when, and its first
// error.
#ifndef COLLECTIVES_NCCL_COMM_STATE_H_
#define COLLECTIVES_NCCL_COMM_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::collectives::nccl {

// NCCL frees a communicator when it is aborted or destroyed, so no thread may be about to call it
// then. A thread that calls it announces that (EnterCall, LeaveCall); one other thread, the closer,
// ends it when no call is under way. The closer does not wait without limit for a call that doesn't
// return: only the abort makes such a call return.
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
  // OK as long as there was no error; the first one stays.
  const absl::Status& status() const { return status_; }

  // All ranks are connected. Returns the first error, if there was one meanwhile.
  absl::Status Connected();

  // An operation starts. Returns the first error if it can't.
  absl::Status Begin();
  // It is done. Returns the first error, if there was one meanwhile.
  absl::Status Succeed();

  // Records an error. Returns whether it is the first: then the caller makes the closer abort the
  // communicator. REQUIRES: !why.ok()
  bool Break(const absl::Status& why);
  // The owner no longer needs it. Returns whether it is without error, so that the closer may end
  // it cleanly; otherwise it is being closed already.
  bool Leave();
  // The closer has ended it, or has stopped trying.
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
