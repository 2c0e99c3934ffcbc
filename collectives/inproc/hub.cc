#include "collectives/inproc/hub.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace hvd::collectives::inproc {

Hub::Hub(int size, std::string secret) : secret_(std::move(secret)), members_(size) {}

// The secrets are checked only after all ranks have joined, so that all ranks return the same
// status.
absl::Status Hub::Join(int rank, absl::string_view secret, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  members_[rank].joined = true;
  members_[rank].denied = secret != secret_;
  const auto all_joined = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return AllJoined(); };
  if (!Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&all_joined), deadline)) {
    std::vector<int> missing;
    for (size_t r = 0; r < members_.size(); ++r) {
      if (!members_[r].joined) missing.push_back(static_cast<int>(r));
    }
    return absl::DeadlineExceededError(
        absl::StrCat("not all ranks joined in time; missing: rank ", absl::StrJoin(missing, ", ")));
  }
  for (size_t r = 0; r < members_.size(); ++r) {
    if (members_[r].denied) {
      return absl::PermissionDeniedError(
          absl::StrCat("rank ", r, " does not know this epoch's secret"));
    }
  }
  return absl::OkStatus();
}

absl::Status Hub::Send(int from, int to, std::string message) {
  absl::MutexLock lock(&mutex_);
  // A receiver that has failed has broken the whole hub, so only one that has left cleanly must be
  // recognised here.
  RETURN_IF_ERROR(StatusOf(from));
  if (members_[to].left) return absl::UnavailableError(absl::StrCat("rank ", to, " is gone"));
  mailboxes_[{from, to}].push_back(std::move(message));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Hub::Receive(int from, int to, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  auto& mailbox = mailboxes_[{from, to}];
  const auto decided = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !mailbox.empty() || members_[from].left || !StatusOf(to).ok();
  };
  Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&decided), Clock::Real().Now() + timeout);
  // A failure comes before messages that have arrived: after a break a receiver must not go on with
  // some of them, while the others fail.
  RETURN_IF_ERROR(StatusOf(to));
  // Messages of a rank that has left are delivered before the error.
  if (!mailbox.empty()) {
    std::string message = std::move(mailbox.front());
    mailbox.pop_front();
    return message;
  }
  if (members_[from].left) return absl::UnavailableError(absl::StrCat("rank ", from, " is gone"));
  return absl::DeadlineExceededError(absl::StrCat("rank ", from, " sent no data in time"));
}

void Hub::Leave(int rank) {
  absl::MutexLock listeners_lock(&listeners_mutex_);
  // Waits for a call of the listener that is under way, since CallListeners holds this lock
  // meanwhile. What the listener uses may be destroyed after this.
  listeners_.erase(rank);
  absl::MutexLock lock(&mutex_);
  members_[rank].left = true;
}

void Hub::Break(int rank) {
  {
    absl::MutexLock lock(&mutex_);
    MarkBroken(rank);
  }
  CallListeners();
}

void Hub::Abort(int rank, absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    // Under one lock: a rank that sees the break must also see this rank's own reason.
    MarkBroken(rank);
    if (members_[rank].aborted.ok()) members_[rank].aborted = absl::AbortedError(reason);
  }
  CallListeners();
}

// The listener is registered first: a break in between is then seen by CallListeners below, or by
// that of the break itself.
void Hub::OnBroken(int rank, std::function<void(const absl::Status&)> listener) {
  {
    absl::MutexLock lock(&listeners_mutex_);
    listeners_[rank] = std::move(listener);
  }
  CallListeners();
}

// Calls each listener at most once: it is removed afterwards. `mutex_` is not held during the
// calls, but `listeners_mutex_` is, so that Leave() returns only when no call is running.
void Hub::CallListeners() {
  absl::MutexLock listeners_lock(&listeners_mutex_);
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    absl::Status status;
    {
      absl::MutexLock lock(&mutex_);
      status = StatusOf(it->first);
    }
    if (status.ok()) {
      ++it;
    } else {
      it->second(status);
      it = listeners_.erase(it);
    }
  }
}

absl::Status Hub::StatusOf(int rank) const {
  // The most specific cause first: the reason for this rank's own abort, then its own failure, then
  // that of the rank with which it all began.
  RETURN_IF_ERROR(members_[rank].aborted);
  if (members_[rank].broken) {
    return absl::UnavailableError("the communicator failed in an earlier operation");
  }
  if (first_broken_ < 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("rank ", first_broken_, " is gone"));
}

void Hub::MarkBroken(int rank) {
  members_[rank].broken = true;
  if (first_broken_ < 0) first_broken_ = rank;
}

bool Hub::AllJoined() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.joined; });
}

}  // namespace hvd::collectives::inproc
