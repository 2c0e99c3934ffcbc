// The signals by which people end a job: SIGINT, SIGTERM, SIGHUP.
#ifndef LAUNCHER_STOP_SIGNALS_H_
#define LAUNCHER_STOP_SIGNALS_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd {

// Blocks them in the calling thread and those that it starts later; ignores SIGPIPE; gives stdin,
// stdout and stderr something to point to if they are closed. Call it before the first thread
// starts.
void PrepareProcess();

// Tells of each of them, from a thread of its own, as long as it lives. One that the process was
// started with ignored (nohup) stays ignored.
class StopSignalWatcher {
 public:
  // `hangup_fd`: its end counts as a SIGHUP; what comes from it before is dropped. Borrowed; -1:
  // none.
  //   ResourceExhausted, Internal: no descriptor to be had.   InvalidArgument: `hangup_fd` is a
  //   file or a device, which never ends.
  static absl::StatusOr<std::unique_ptr<StopSignalWatcher>> Start(
      std::function<void(int signal)> on_signal, int hangup_fd = -1);
  ~StopSignalWatcher();

 private:
  StopSignalWatcher(std::unique_ptr<EventLoop> loop, Fd signals)
      : loop_(std::move(loop)), signals_(std::move(signals)) {}

  std::unique_ptr<EventLoop> loop_;
  Fd signals_;
  std::thread thread_;
};

}  // namespace hvd

#endif  // LAUNCHER_STOP_SIGNALS_H_
