// A shared page with a robust lock, for the early detection of a process's death: before the kernel
// has freed the dead process's memory. Freeing takes some 70 ms per GB; sockets are closed and the
// parent is notified only after that.
#ifndef BASE_OS_LIVENESS_PAGE_H_
#define BASE_OS_LIVENESS_PAGE_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

// A page shared by two processes, with one robust lock (futex). A thread of one process holds the
// lock until the process ends. The other process waits for the lock, which the kernel releases as
// its first step when the holder dies. Exit and exec count as death; forks of the holder have no
// effect. The lock is taken once in the page's life: a second holder is refused. The page also has
// the holder's word whether it is busy, which stays after its death. Thread-safe, but must not be
// moved while in use.
class LivenessPage {
 public:
  // A new page without a holder.
  // Errors:
  //   - ResourceExhausted, other codes of errno: no memory or descriptor.
  static absl::StatusOr<LivenessPage> Create();
  // Maps the page of a descriptor that came from Create, usually in another process.
  // Errors:
  //   - InvalidArgument: the descriptor is not that of such a page.
  //   - other codes of errno: the page can't be mapped.
  static absl::StatusOr<LivenessPage> Map(Fd fd);

  // The descriptor to send to the other process; close-on-exec. Borrowed. -1 if the page came from
  // Map.
  int fd() const { return fd_.get(); }

  // Takes the lock on a new thread, which sleeps for the rest of this process's life with all
  // signals blocked. On return the lock is held, and independent of this object.
  // Errors:
  //   - FailedPrecondition: the lock was taken before.
  //   - ResourceExhausted: no thread available.
  absl::Status HoldForever();

  // Says whether the holder is busy, so that its death would come at a wrong time; at first it is
  // not. Does nothing in any other process, such as a fork of the holder. REQUIRES: this object's
  // HoldForever has succeeded.
  void SetBusy(bool busy);
  // What the holder said last.
  bool busy() const;

  enum class End {
    kDied,       // the holder
    kCancelled,  // the holder lives
    kNeverHeld,  // cancelled, and there never was a holder
  };
  // Waits until the lock is held and then until the holder has died, or until Cancel. One caller at
  // a time.
  End AwaitDeath();
  // Ends the present call of AwaitDeath and all later ones.
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
