// The state machine of one NCCL communicator's life: when a thread may use it, and its first error.
#ifndef COLLECTIVES_NCCL_COMM_STATE_H_
#define COLLECTIVES_NCCL_COMM_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::collectives::nccl {

// NCCL frees a communicator when it is aborted or destroyed, so no thread may call it from then on.
// So each call is bracketed by EnterCall and LeaveCall, and a separate thread, the closer, ends the
// communicator when no call is in progress. The closer's wait for a call is bounded: a stuck call
// returns only when the communicator is aborted.
//
//   connecting --Connected--> idle --Begin--> busy --Succeed--> idle
//   connecting, idle, busy --Break--> closing --Closed--> closed
//   idle --Leave--> closing
//
// Pure: no lock, thread or clock. The owner must serialise the calls.
class CommState {
 public:
  enum class State { kConnecting, kIdle, kBusy, kClosing, kClosed };

  State state() const { return state_; }
  // The first error; FailedPrecondition after Leave(); otherwise OK.
  const absl::Status& status() const { return status_; }

  // All ranks are connected. Returns status().
  absl::Status Connected();

  // Starts an operation.
  // Errors: status(), and
  //   - Internal: the state is not kIdle.
  absl::Status Begin();
  // Ends the operation. Returns status(): not OK if it failed meanwhile.
  absl::Status Succeed();

  // Records an error. Returns whether it is the first; then the caller must have the closer abort
  // the communicator.
  // REQUIRES: !why.ok()
  bool Break(const absl::Status& why);
  // The owner no longer needs the communicator. Returns whether there was no error; then the caller
  // must have the closer end it cleanly. Otherwise it is being closed already.
  bool Leave();
  // The closer has ended the communicator, or has given up on it.
  void Closed();

  // Returns whether a call may be made now; if so, LeaveCall must follow.
  bool EnterCall();
  void LeaveCall();
  bool in_call() const { return in_call_; }

 private:
  State state_ = State::kConnecting;
  absl::Status status_;
  bool in_call_ = false;
};

absl::string_view NameOf(CommState::State state);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_COMM_STATE_H_
