// A shared page with a robust lock, by which one process learns at once that another has died:
// before the kernel has freed the dead process's memory. Freeing takes some 70 ms per GB, and
// sockets are closed and the parent is notified only after that.
#ifndef BASE_OS_LIVENESS_PAGE_H_
#define BASE_OS_LIVENESS_PAGE_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

// A page shared by two processes, with one robust lock in it. A thread of one process holds the
// lock until the process ends; the other process waits for the lock, which the kernel hands on as
// the first thing when the holder dies. Exit and exec count as death; forks of the holder do not
// matter. The lock is taken once in the page's life: a second holder is refused. Thread-safe,
// except that it must not be moved while used.
class LivenessPage {
 public:
  // A new page without a holder.
  // Errors:
  //   - ResourceExhausted, other codes of errno: no memory or descriptor.
  static absl::StatusOr<LivenessPage> Create();
  // The page of a descriptor that came from Create.
  // Errors:
  //   - InvalidArgument: not the descriptor of such a page.
  //   - other codes of errno: it can't be mapped.
  static absl::StatusOr<LivenessPage> Map(Fd fd);

  // To be sent to the other process; closed by exec. Borrowed. -1 if the page came from Map.
  int fd() const { return fd_.get(); }

  // Takes the lock on a new thread, which sleeps for the rest of this process's life and takes no
  // signals. The lock is held on return, and does not need this object any more.
  // Errors:
  //   - FailedPrecondition: the lock was taken before.
  //   - ResourceExhausted: no thread available.
  absl::Status HoldForever();

  enum class End {
    kDied,       // the holder
    kCancelled,  // the holder lives
    kNeverHeld,  // cancelled, and there never was a holder
  };
  // Waits until the page is held, and then until the holder has died, or for Cancel. One caller at
  // a time.
  End AwaitDeath();
  // Ends AwaitDeath, now and later.
  void Cancel();

 private:
  class Lock;

  LivenessPage(std::shared_ptr<Lock> lock, Fd fd) : lock_(std::move(lock)), fd_(std::move(fd)) {}
  static absl::StatusOr<std::shared_ptr<Lock>> MapLock(int fd);

  std::shared_ptr<Lock> lock_;
  Fd fd_;
};

}  // namespace hvd::os

#endif  // BASE_OS_LIVENESS_PAGE_H_
