#include "rendezvous/etcd/leadership.h"

#include <utility>

namespace hvd::rendezvous::etcd {

absl::Status Leadership::state() const {
  absl::MutexLock lock(&mu_);
  return state_;
}

void Leadership::Lose(const absl::Status& why) {
  std::function<void(const absl::Status&)> callback;
  {
    absl::MutexLock lock(&mu_);
    if (!state_.ok()) return;
    state_ = why;
    callback = on_lost_;
  }
  // Outside the lock: the callback may call into this object.
  if (callback) callback(why);
}

void Leadership::End() {
  absl::MutexLock lock(&mu_);
  // Wakes writers and the keeper. The callback is not called, because its receiver is the one that
  // leaves.
  if (state_.ok()) state_ = absl::CancelledError("this daemon has left the job");
}

void Leadership::OnLost(std::function<void(const absl::Status& why)> callback) {
  absl::Status state;
  {
    absl::MutexLock lock(&mu_);
    state = state_;
    // In one step with the reading of the state: a loss at this time either sees the callback, or
    // is seen here.
    on_lost_ = callback;
  }
  if (!state.ok()) callback(state);
}

bool Leadership::AwaitLoss(absl::Time deadline) const {
  absl::MutexLock lock(&mu_);
  return clock_.AwaitWithDeadline(
      mu_,
      absl::Condition(
          +[](const absl::Status* state) { return !state->ok(); }, &state_),
      deadline);
}

}  // namespace hvd::rendezvous::etcd
