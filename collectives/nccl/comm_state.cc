#include "collectives/nccl/comm_state.h"

#include "absl/strings/str_cat.h"

namespace hvd::collectives::nccl {

absl::Status CommState::Connected() {
  if (state_ == State::kConnecting) state_ = State::kIdle;
  return status_;
}

absl::Status CommState::Begin() {
  if (!status_.ok()) return status_;
  if (state_ != State::kIdle) {
    return absl::InternalError(
        absl::StrCat("an operation on a communicator that is ", NameOf(state_)));
  }
  state_ = State::kBusy;
  return absl::OkStatus();
}

// An operation that was broken meanwhile stays broken: its result may be incomplete, so the first
// error is returned even if the operation itself has succeeded.
absl::Status CommState::Succeed() {
  if (state_ == State::kBusy) state_ = State::kIdle;
  return status_;
}

// Only the first error is kept and starts a closer: later ones are its consequences.
bool CommState::Break(const absl::Status& why) {
  if (state_ == State::kClosing || state_ == State::kClosed) return false;
  status_ = why;
  state_ = State::kClosing;
  return true;
}

bool CommState::Leave() {
  // Only an idle communicator can be finalized: one that is connecting or busy waits for peers.
  if (state_ != State::kIdle) return false;
  status_ = absl::FailedPreconditionError("the communicator has been closed");
  state_ = State::kClosing;
  return true;
}

void CommState::Closed() { state_ = State::kClosed; }

bool CommState::EnterCall() {
  if (state_ == State::kClosing || state_ == State::kClosed) return false;
  in_call_ = true;  // a flag is enough: only one thread at a time makes calls
  return true;
}

void CommState::LeaveCall() { in_call_ = false; }

absl::string_view NameOf(CommState::State state) {
  switch (state) {
    case CommState::State::kConnecting:
      return "connecting";
    case CommState::State::kIdle:
      return "idle";
    case CommState::State::kBusy:
      return "busy";
    case CommState::State::kClosing:
      return "closing";
    case CommState::State::kClosed:
      break;
  }
  return "closed";
}

}  // namespace hvd::collectives::nccl
