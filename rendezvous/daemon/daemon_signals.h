// The handling of SIGTERM, SIGINT and SIGHUP by the daemon. It ignores the notices of schedulers.
#ifndef RENDEZVOUS_DAEMON_DAEMON_SIGNALS_H_
#define RENDEZVOUS_DAEMON_DAEMON_SIGNALS_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::rendezvous::daemon {

// Blocks both signals in this thread and in threads started later, and returns a descriptor from
// which they are read. Also ignores SIGPIPE and SIGXFSZ.
// Errors:
//   - ResourceExhausted: too many open files.
absl::StatusOr<Fd> TakeDaemonSignals();

// Whether a blocked signal is pending that has not been read yet.
bool DaemonSignalIsPending();

// Restores the default action: from now on they terminate the process. REQUIRES: called by
// the main thread.
void ReleaseDaemonSignals();

// The signal handler of the daemon. SIGINT ends the job. SIGTERM and SIGHUP end it too, or leave a
// job with a store to the next daemon. A second signal ends the job without a grace, and terminates
// the process if that hangs. Runs on a separate thread, so that a disk or a reader of the output
// that hangs does not delay signals.
class DaemonSignals {
 public:
  // The time limit for the daemon to react to a second signal, or to leave the job; after it the
  // process terminates in any case. Longer than the 5 s for which the membership waits for agents
  // to finish, so that an orderly end, which also removes the token file, comes first.
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  struct Actions {
    // Ends the job; must not block.
    std::function<void(const std::string& reason, int exit_code, absl::Duration grace)> stop;
    // Leaves the job to another daemon; must not block. Null if the job has no store.
    std::function<void()> leave;
  };

  // Opens all descriptors now, so that Start needs none: once the daemon listens, unauthenticated
  // peers may use up its last ones. `signals` is the result of TakeDaemonSignals.
  // Errors:
  //   - ResourceExhausted: too many open files.
  static absl::StatusOr<std::unique_ptr<DaemonSignals>> Create(Fd signals);
  ~DaemonSignals();

  // Starts to handle signals with these actions, including those that are pending since
  // TakeDaemonSignals. Call once.
  void Start(Actions actions);

  // Stops calling the actions: from now on a signal only limits the time until the process ends. No
  // action is running when this returns.
  void JobIsOver();

 private:
  // The grace of workers after the first signal.
  static constexpr absl::Duration kGrace = absl::Seconds(5);

  DaemonSignals(std::unique_ptr<EventLoop> loop, Fd signals);
  void Handle();
  void EndInTime(int exit_code);

  const std::unique_ptr<EventLoop> loop_;
  const Fd signals_;
  absl::Duration grace_ = kGrace;  // used by the thread only
  absl::Mutex mutex_;              // held while an action runs
  Actions actions_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_DAEMON_SIGNALS_H_
