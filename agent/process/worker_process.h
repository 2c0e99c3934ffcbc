// The agent's interface to a worker's process: a child (ChildProcess) or an adopted process
// (Adoption).
#ifndef AGENT_PROCESS_WORKER_PROCESS_H_
#define AGENT_PROCESS_WORKER_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/os/process.h"

namespace hvd::agent::process {

struct ProcessEnd {
  os::ExitStatus status;
  std::string unknown;  // not empty: why `status` is not known
  std::vector<std::string> stderr_tail;
};

// Not thread-safe: belongs to the loop's thread. The destructor ends the process if it still runs.
class WorkerProcess {
 public:
  struct Callbacks {
    // A line of its output, with its line end.
    std::function<void(absl::string_view line, bool is_stderr)> on_line;
    // It seems to be ending; on_end follows.
    std::function<void()> on_dying;
    // It has ended, and its output is complete. Last callback; it may destroy the object.
    std::function<void(ProcessEnd)> on_end;
  };

  virtual ~WorkerProcess() = default;

  virtual pid_t pid() const = 0;
  virtual bool running() const = 0;

  // Whether process `asker` may be this process or one of its descendants.
  // Errors: those of DescendsFrom.
  virtual absl::StatusOr<bool> Includes(pid_t asker) const = 0;

  // Asks it to end by itself within `grace`.
  virtual void AskToEnd(absl::Duration grace) = 0;
  // The minimum time that the process gets to end by itself, even if `grace` is shorter.
  virtual absl::Duration LeastGrace() const = 0;
  // Sends SIGKILL.
  virtual void Kill() = 0;

  // Stops (true) or resumes the reading of its output. The process's end is detected in both cases.
  virtual void set_paused(bool paused) = 0;

  // Passes on what it has written so far, even while paused; a last line without an end, too.
  virtual void TakeOutput() = 0;
};

}  // namespace hvd::agent::process

#endif  // AGENT_PROCESS_WORKER_PROCESS_H_
