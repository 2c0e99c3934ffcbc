// A probe for the Python stack of a running process.
#ifndef AGENT_INSPECTION_STACK_PROBE_H_
#define AGENT_INSPECTION_STACK_PROBE_H_

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/os/other_process.h"

namespace hvd::agent::inspection {

struct StackSample {
  std::string doing;               // a clause: "is at train.py:42 in load"
  std::vector<std::string> stack;  // see ParseStack; empty: not available
};

// A sample without a stack, from the state of the process in /proc. `has_ended`: the caller knows
// that the process has ended; its absence from /proc is no proof of that.
StackSample SampleByKernel(pid_t process, bool has_ended);

// Reads the Python stack of one process. The probe sends a signal, whose handler (faulthandler)
// writes the stack to the probe's pipe. This works in any state of the process, since the handler
// takes no lock of Python. Without a handler the signal would end the process; so the probe sends
// it only to a process that has written kReady to the pipe and has a handler. Not thread-safe:
// belongs to the loop's thread.
class StackProbe {
 public:
  // A real-time signal, because these have no predefined meaning.
  static int Signal() { return SIGRTMAX - 9; }

  // Written by the process when its handler is installed.
  static constexpr char kReady[] = "ready\n";

  // The time limit for an answer; after it the process's state in /proc is the answer.
  static constexpr absl::Duration kPatience = absl::Seconds(1);

  // Errors:
  //   - ResourceExhausted: no descriptor available.
  //   - NotFound: there is no such process.
  static absl::StatusOr<std::unique_ptr<StackProbe>> Create(EventLoop& loop, pid_t process);
  ~StackProbe();

  // The end of the pipe for the process to write to; a full pipe does not stop it. Borrowed.
  int fd() const { return pipe_.write.get(); }

  // Calls `answer` once, from the loop, unless the probe is destroyed before. A call while another
  // is pending is ignored: its `answer` is never called.
  void Ask(std::function<void(StackSample)> answer);

 private:
  StackProbe(EventLoop& loop, os::OtherProcess process, Pipe pipe);
  bool SendSignal() const;
  void Read();
  void OnReadable();
  void Answer(StackSample sample);

  EventLoop& loop_;
  const os::OtherProcess process_;
  const Pipe pipe_;
  bool ready_ = false;
  std::string dump_;
  std::function<void(StackSample)> answer_;  // null: no call is pending
  std::optional<EventLoop::TimerId> patience_timer_, settle_timer_;
};

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_STACK_PROBE_H_
