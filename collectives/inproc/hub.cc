#include "collectives/inproc/hub.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace hvd {

Hub::Hub(int size, std::string secret) : secret_(std::move(secret)), members_(size) {}

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
        absl::StrCat("did not come in time: rank ", absl::StrJoin(missing, ", ")));
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
  RETURN_IF_ERROR(StatusOf(from));
  if (members_[to].left) return absl::UnavailableError(absl::StrCat("rank ", to, " is gone"));
  mailboxes_[{from, to}].push_back(std::move(message));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Hub::Receive(int from, int to, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto& mailbox = mailboxes_[{from, to}];
  const auto decided = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !mailbox.empty() || members_[from].left || !StatusOf(to).ok();
  };
  Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&decided), deadline);
  RETURN_IF_ERROR(StatusOf(to));
  if (!mailbox.empty()) {
    std::string message = std::move(mailbox.front());
    mailbox.pop_front();
    return message;
  }
  if (members_[from].left) return absl::UnavailableError(absl::StrCat("rank ", from, " is gone"));
  return absl::DeadlineExceededError(absl::StrCat("rank ", from, " sent no data in time"));
}

void Hub::Leave(int rank) {
  absl::MutexLock lock(&mutex_);
  members_[rank].left = true;
}

void Hub::Break(int rank) {
  absl::MutexLock lock(&mutex_);
  members_[rank].broken = true;
}

void Hub::Abort(int rank, absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  members_[rank].broken = true;
  if (members_[rank].aborted.ok()) members_[rank].aborted = absl::AbortedError(reason);
}

absl::Status Hub::StatusOf(int rank) const {
  RETURN_IF_ERROR(members_[rank].aborted);
  if (members_[rank].broken) {
    return absl::UnavailableError("the communicator failed in an earlier operation");
  }
  for (size_t r = 0; r < members_.size(); ++r) {
    if (members_[r].broken) return absl::UnavailableError(absl::StrCat("rank ", r, " is gone"));
  }
  return absl::OkStatus();
}

bool Hub::AllJoined() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.joined; });
}

}  // namespace hvd
