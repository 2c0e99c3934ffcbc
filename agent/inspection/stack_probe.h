// Looks what a process is doing.
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
  std::vector<std::string> stack;  // see ParseStack; empty: not to be had
};

// What the kernel says that a process is doing, as a sample without a stack. `has_ended` is the
// caller's word: what /proc does not tell is no proof of it.
StackSample SampleByKernel(pid_t process, bool has_ended);

// Asks one process for its Python stack: sends it a signal, on which it writes (faulthandler) to a
// pipe of this object. That works whatever it is doing: the handler takes no lock of Python's. A
// process gets it only after it has written kReady to the pipe, and if it has a handler, since it
// would end without one. Belongs to the loop's thread.
class StackProbe {
 public:
  // A real-time signal, so that it means nothing to anybody else.
  static int Signal() { return SIGRTMAX - 9; }

  // The process has its handler.
  static constexpr char kReady[] = "ready\n";

  // For the process to answer; then it is described as the kernel sees it.
  static constexpr absl::Duration kPatience = absl::Seconds(1);

  //   ResourceExhausted: no descriptor to be had.   NotFound: there is no such process.
  static absl::StatusOr<std::unique_ptr<StackProbe>> Create(EventLoop& loop, pid_t process);
  ~StackProbe();

  // For the process to write to; a full pipe does not stop it. Borrowed.
  int fd() const { return pipe_.write.get(); }

  // Calls `answer` once, from the loop, unless the probe is destroyed before. A question that comes
  // while another is not answered has no answer of its own.
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
  std::function<void(StackSample)> answer_;  // null: nothing was asked
  std::optional<EventLoop::TimerId> patience_timer_, settle_timer_;
};

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_STACK_PROBE_H_
