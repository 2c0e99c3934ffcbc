// What SIGTERM and SIGINT mean to the daemon.
#ifndef RENDEZVOUS_DAEMON_SIGNALS_H_
#define RENDEZVOUS_DAEMON_SIGNALS_H_

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "rendezvous/server/server.h"

namespace hvd {

// Blocks both, here and in threads started later, and makes them readable; SIGPIPE is ignored.
//   ResourceExhausted: too many open files.
absl::StatusOr<Fd> TakeDaemonSignals();

// From now on they end this process, as they do by default. REQUIRES: called by the main thread.
void ReleaseDaemonSignals();

// SIGINT ends the job, and so does SIGTERM, unless the job is kept: then that calls `leave`. Any
// further signal ends the job at once. For one thread.
class DaemonSignals {
 public:
  // `fd` is TakeDaemonSignals'.   `leave`: null if the job is not kept.
  DaemonSignals(int fd, Server& server, std::function<void()> leave)
      : fd_(fd), server_(server), leave_(std::move(leave)) {}

  // To be called when there is something to read.
  void Handle();

 private:
  // For workers to end by themselves after the first signal.
  static constexpr absl::Duration kGrace = absl::Seconds(5);

  const int fd_;
  Server& server_;
  const std::function<void()> leave_;
  absl::Duration grace_ = kGrace;
};

}  // namespace hvd

#endif  // RENDEZVOUS_DAEMON_SIGNALS_H_
