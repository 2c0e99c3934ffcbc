// The handling of SIGTERM and SIGINT by the daemon.
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

// Blocks both, here and in threads started later, and makes them readable; SIGPIPE is ignored.
// Errors:
//   - ResourceExhausted: too many open files.
absl::StatusOr<Fd> TakeDaemonSignals();

// Whether one has come since TakeDaemonSignals that nobody has taken.
bool DaemonSignalIsPending();

// From now on they end this process, as they do by default. REQUIRES: called by the main thread.
void ReleaseDaemonSignals();

// SIGINT ends the job. SIGTERM ends it too, but leaves a job that is kept to the next daemon. Any
// further signal ends the job at once, and the process with it if that hangs. Runs on a thread
// where nothing else runs, so that a hang elsewhere, on a disk or for a reader, delays no signal.
class DaemonSignals {
 public:
  // The time for the daemon's reaction to a second signal, or to leave the job. Then the process
  // ends in any case. Longer than the membership waits for agents to finish (5 s): an end in good
  // order, which also removes the token file, comes first.
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  struct Actions {
    // Ends the job; must not block.
    std::function<void(const std::string& reason, int exit_code, absl::Duration grace)> stop;
    // Leaves the job to another daemon; must not block; null if the job is not kept.
    std::function<void()> leave;
  };

  // Opens all descriptors now, so that Start needs no more: strangers may use up the daemon's last
  // descriptors as soon as it listens. `signals` comes from TakeDaemonSignals.
  // Errors:
  //   - ResourceExhausted: too many open files.
  static absl::StatusOr<std::unique_ptr<DaemonSignals>> Create(Fd signals);
  ~DaemonSignals();

  // From now on signals have these effects, also those that came since TakeDaemonSignals. Call
  // once.
  void Start(Actions actions);

  // From now on a signal does not concern the job: it only bounds the time to the process's end. No
  // action is under way when this returns.
  void JobIsOver();

 private:
  // For workers to end by themselves after the first signal.
  static constexpr absl::Duration kGrace = absl::Seconds(5);

  DaemonSignals(std::unique_ptr<EventLoop> loop, Fd signals);
  void Handle();
  void EndInTime(int exit_code);

  const std::unique_ptr<EventLoop> loop_;
  const Fd signals_;
  absl::Duration grace_ = kGrace;  // the thread's
  absl::Mutex mutex_;              // held while an action is under way
  Actions actions_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_DAEMON_SIGNALS_H_
