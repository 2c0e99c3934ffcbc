// The lease of a world: the time for which rank 0 may assume that its world is the newest. It
// starts with each confirmation by the daemon, and allows rank 0 to make commits.
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
//
// If a host is paused with all its processes, or suspended, the daemon forms another world without
// it. When the host continues, the lease has expired, so the old world makes no more commits. The
// pause of a virtual machine whose clocks stop meanwhile is not noticed; Confirm, which always asks
// the daemon, covers that case.
class WorldLease {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(2);  // between two reports

  // Reports to the daemon and returns its answer. OK: the world is the newest, and not broken.
  // Errors:
  //   - FailedPrecondition, NotFound: the world is broken or not the newest.
  //   - Any other code: there was no answer within the timeout.
  using Report = std::function<absl::Status(absl::Duration timeout)>;

  // REQUIRES: the daemon has just formed the world. `tolerance` is the time for which the daemon
  // forms no other world, whatever happens to this process. `cancel` ends the running call of
  // `report` and all later ones. `pause`: between two reports.
  WorldLease(Report report, std::function<void()> cancel, absl::Duration tolerance,
             std::function<os::BootTime()> now = os::ReadBootTime, absl::Duration pause = kPause);
  ~WorldLease();

  // Returns OK at once while the lease holds; else asks the daemon like Confirm, for as long as the
  // tolerance.
  // Errors: those of Confirm.
  absl::Status Check();

  // Asks the daemon. Without an answer returns OK while the lease holds.
  // Errors:
  //   - Aborted: there is, or will be, another world.
  //   - Unavailable: there is no answer, and the lease has expired.
  absl::Status Confirm();

  // Makes the next report without delay.
  void ReportSoon();

 private:
  absl::Status Ask(absl::Duration timeout);
  bool Holds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MustAct() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_ || hurries_; }
  void Run();

  const Report report_;
  const std::function<void()> cancel_;
  const absl::Duration tolerance_;
  const std::function<os::BootTime()> now_;
  const absl::Duration pause_;
  mutable absl::Mutex mutex_;
  os::BootTime confirmed_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool hurries_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_WORLD_LEASE_H_
