// Rank 0's right to let commits count: its world was the newest one when the daemon last said so,
// and not so long ago that there can be another by now.
#ifndef WORKER_RUNTIME_SESSION_WORLD_LEASE_H_
#define WORKER_RUNTIME_SESSION_WORLD_LEASE_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/os/boot_time.h"

namespace hvd::worker_runtime::session {

// Tells the daemon every few seconds, on a thread of its own, how far the job is. Thread-safe. A
// host that is paused together with all its processes, or suspended, makes the daemon form another
// world beside this one; when it goes on, the lease has run out. Not seen is the pause of a virtual
// machine whose clocks stand still meanwhile, for which Confirm is: it always asks.
class WorldLease {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(2);  // between two words

  // A round trip to the daemon within the timeout. OK: the world is the newest, and not broken.
  // FailedPrecondition, NotFound: it is not.   Others: no answer.
  using Tell = std::function<absl::Status(absl::Duration timeout)>;

  // The daemon has just formed the world. `tolerance`: for so long it forms no other, whatever
  // happens to this process. `cancel` ends what Tell waits for, and all that comes after.
  WorldLease(Tell tell, std::function<void()> cancel, absl::Duration tolerance,
             std::function<os::BootTime()> now = os::ReadBootTime);
  ~WorldLease();

  // OK at once while the daemon's last word is new enough; else as Confirm.
  absl::Status Check();

  // Asks the daemon; does with its last word if it is away for a moment.   Aborted: there is, or
  // will be, another world.   Unavailable: no answer, for longer than the tolerance.
  absl::Status Confirm();

 private:
  absl::Status Ask(absl::Duration timeout);
  bool Holds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  const Tell tell_;
  const std::function<void()> cancel_;
  const absl::Duration tolerance_;
  const std::function<os::BootTime()> now_;
  mutable absl::Mutex mutex_;
  os::BootTime confirmed_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_WORLD_LEASE_H_
