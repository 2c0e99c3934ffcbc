// The message hub of the ranks of one group in one process: a mailbox for every pair of ranks.
#ifndef COLLECTIVES_INPROC_HUB_H_
#define COLLECTIVES_INPROC_HUB_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hvd::collectives::inproc {

// Safe for concurrent use. Messages of a pair arrive in order.
class Hub {
 public:
  Hub(int size, std::string secret);

  // Registers `rank` and waits for all others.
  // Errors:
  //   - PermissionDenied: a rank joined with another secret.
  //   - DeadlineExceeded: not all ranks have joined; names the missing ones.
  absl::Status Join(int rank, absl::string_view secret, absl::Time deadline);

  // Never waits.
  // Errors: those of Receive().
  absl::Status Send(int from, int to, std::string message);

  // Waits for the next message.
  // Errors:
  //   - Aborted: Abort(to) was called.
  //   - Unavailable: `from` has left, or any rank is broken.
  //   - DeadlineExceeded: the timeout passed.
  absl::StatusOr<std::string> Receive(int from, int to, absl::Duration timeout);

  // `rank` leaves cleanly: what it has sent can still be received.
  void Leave(int rank);
  // `rank` can't be used any more: all ranks' operations fail from now on.
  void Break(int rank);
  // Break(), and `rank` itself fails with Aborted(reason). Later reasons are ignored.
  void Abort(int rank, absl::string_view reason);

  // Calls `listener` with StatusOf(rank) as soon as that is not OK, at once if it already isn't.
  // `listener` is not called after Leave(rank) has returned. It must not block or call this object.
  void OnBroken(int rank, std::function<void(const absl::Status&)> listener);

 private:
  struct Member {
    bool joined = false;
    bool left = false;
    bool broken = false;
    bool denied = false;
    absl::Status aborted;
  };

  // OK while `rank` can still use the hub.
  absl::Status StatusOf(int rank) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkBroken(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllJoined() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CallListeners() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string secret_;
  absl::Mutex mutex_;
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  int first_broken_ ABSL_GUARDED_BY(mutex_) = -1;  // the others broke because of this one
  std::map<std::pair<int, int>, std::deque<std::string>> mailboxes_ ABSL_GUARDED_BY(mutex_);
  // Held while the listeners are called, so that no rank can leave meanwhile.
  absl::Mutex listeners_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::map<int, std::function<void(const absl::Status&)>> listeners_
      ABSL_GUARDED_BY(listeners_mutex_);
};

}  // namespace hvd::collectives::inproc

#endif  // COLLECTIVES_INPROC_HUB_H_
