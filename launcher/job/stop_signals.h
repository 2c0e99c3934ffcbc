// The watcher of a job's signals: the stop signals SIGINT, SIGTERM and SIGHUP, the end of the
// program that started this one, and the notices of schedulers (base/os/signals).
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

// The value in place of a signal's number for the end of the stream.
inline constexpr int kStreamHasEnded = 0;

// Blocks these signals in the calling thread and in threads that it starts later; ignores SIGPIPE
// and SIGXFSZ; opens /dev/null as stdin, stdout or stderr if they are closed. Call it before
// the first thread starts.
void PrepareProcess();

// Calls back at each stop signal and each notice, on a separate thread. A signal that was ignored
// when the process started (nohup) stays ignored. SIGHUP after another one is dropped. After a
// second signal the watcher ends the
// process with exit code 128 + signal if it still runs after kPatience, whatever blocks its other
// threads.
class StopSignalWatcher {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `hangup_fd`: a stream whose end is reported as kStreamHasEnded; its data is dropped. Borrowed;
  // -1: none.
  // Errors:
  //   - ResourceExhausted, Internal: no descriptor available.
  //   - InvalidArgument: `hangup_fd` is a file or a device, which never ends.
  static absl::StatusOr<std::unique_ptr<StopSignalWatcher>> Start(
      std::function<void(int signal)> on_signal, int hangup_fd = -1);
  ~StopSignalWatcher();

 private:
  StopSignalWatcher(std::unique_ptr<EventLoop> loop, Fd signals,
                    std::function<void(int signal)> on_signal)
      : loop_(std::move(loop)), signals_(std::move(signals)), on_signal_(std::move(on_signal)) {}

  void Notify(int signal);

  std::unique_ptr<EventLoop> loop_;
  Fd signals_;
  std::function<void(int signal)> on_signal_;
  int told_ = 0;
  std::thread thread_;
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_STOP_SIGNALS_H_
