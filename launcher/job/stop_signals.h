// The signals by which people end a job: SIGINT, SIGTERM, SIGHUP; and the end of the program that
// started it.
#ifndef LAUNCHER_JOB_STOP_SIGNALS_H_
#define LAUNCHER_JOB_STOP_SIGNALS_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::launcher::job {

// Told in a signal's place: the stream has ended.
inline constexpr int kStreamHasEnded = 0;

// Blocks them in the calling thread and those that it starts later; ignores SIGPIPE; gives stdin,
// stdout and stderr something to point to if they are closed. Call it before the first thread
// starts.
void PrepareProcess();

// Tells of each of them, from a thread of its own, as long as it lives. One that the process was
// started with ignored (nohup) stays ignored. A second one ends the process, with 128 + signal, if
// the owner has not done so kPatience later: whatever hangs, that works.
class StopSignalWatcher {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `hangup_fd`: its end is told as kStreamHasEnded; what comes from it before is dropped.
  // Borrowed; -1: none.
  //   ResourceExhausted, Internal: no descriptor to be had.   InvalidArgument: `hangup_fd` is a
  //   file or a device, which never ends.
  static absl::StatusOr<std::unique_ptr<StopSignalWatcher>> Start(
      std::function<void(int signal)> on_signal, int hangup_fd = -1);
  ~StopSignalWatcher();

 private:
  StopSignalWatcher(std::unique_ptr<EventLoop> loop, Fd signals,
                    std::function<void(int signal)> on_signal)
      : loop_(std::move(loop)), signals_(std::move(signals)), on_signal_(std::move(on_signal)) {}

  void Tell(int signal);

  std::unique_ptr<EventLoop> loop_;
  Fd signals_;
  std::function<void(int signal)> on_signal_;
  int told_ = 0;
  std::thread thread_;
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_STOP_SIGNALS_H_
