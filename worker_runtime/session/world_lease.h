// The lease of a world, rank 0's right to let commits count: the daemon has confirmed that its
// world is the newest, and so lately that there can't be another yet.
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

// Reports the job's progress to the daemon every few seconds, on a separate thread. Thread-safe.
// When a host is paused together with all its processes, or suspended, the daemon forms another
// world beside this one; when the host goes on, the lease has run out. The pause of a virtual
// machine whose clocks stand still meanwhile is not noticed; for this there is Confirm, which
// always asks.
class WorldLease {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(2);  // between two reports

  // A round trip to the daemon within the timeout. OK: the world is the newest, and not broken.
  // Errors:
  //   - FailedPrecondition, NotFound: it is not.
  //   - Others: no answer.
  using Report = std::function<absl::Status(absl::Duration timeout)>;

  // The daemon has just formed the world. `tolerance`: for this time it forms no other, whatever
  // happens to this process. `cancel` ends the current call of Report, and all later ones.
  WorldLease(Report report, std::function<void()> cancel, absl::Duration tolerance,
             std::function<os::BootTime()> now = os::ReadBootTime);
  ~WorldLease();

  // OK at once while the daemon's last answer is recent enough; else like Confirm.
  // Errors: those of Confirm.
  absl::Status Check();

  // Asks the daemon; uses its last answer if it is away for a moment.
  // Errors:
  //   - Aborted: there is, or will be, another world.
  //   - Unavailable: no answer, for longer than the tolerance.
  absl::Status Confirm();

 private:
  absl::Status Ask(absl::Duration timeout);
  bool Holds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  const Report report_;
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
