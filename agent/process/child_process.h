// A worker process that is the agent's child, with pipes for its output.
#ifndef AGENT_PROCESS_CHILD_PROCESS_H_
#define AGENT_PROCESS_CHILD_PROCESS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/output/stderr_tail.h"
#include "agent/output/worker_pipe.h"
#include "agent/process/worker_process.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::agent::process {

// The kernel kills the process when the loop's thread ends (PR_SET_PDEATHSIG). The destructor kills
// the process, but not the rest of its process group.
class ChildProcess : public WorkerProcess {
 public:
  // The time between the process's end and the kill of other processes that still hold its output
  // pipes open.
  static constexpr absl::Duration kLingerTime = absl::Milliseconds(200);

  // Starts the process in a new process group, with `input` as the contents of its stdin and pipes
  // for its output; these settings override those in `options`.
  // Errors:
  //   - ResourceExhausted: `input` is larger than a pipe's capacity.
  //   - any other: as Process::Spawn.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Spawn(EventLoop& loop,
                                                              os::SpawnOptions options,
                                                              const std::string& input,
                                                              Callbacks callbacks);
  ~ChildProcess() override;

  pid_t pid() const override { return process_.pid(); }
  bool running() const override { return phase_ == Phase::kRunning; }
  // True for all descendants of the agent, which is a subreaper: an orphan's ancestry can't be
  // attributed to one worker.
  absl::StatusOr<bool> Includes(pid_t asker) const override;
  // Sends SIGTERM to the process group.
  void AskToEnd(absl::Duration grace) override;
  absl::Duration LeastGrace() const override { return absl::ZeroDuration(); }
  // Kills the process group.
  void Kill() override;
  void set_paused(bool paused) override;
  void TakeOutput() override;

 private:
  // The state of the process and its output:
  //
  //   kRunning --the process ends--> kReading --a pipe is open still--> kLingering
  //                                     |                                   |
  //                                     +--both are closed--> kFinishing <--+ both are closed, or
  //                                                                           kLingerTime is over
  enum class Phase {
    kRunning,
    kReading,    // reads what is left in the pipes
    kLingering,  // waits for other processes that hold the pipes open
    kFinishing,  // on_end follows
  };

  ChildProcess(EventLoop& loop, os::Process process, Callbacks callbacks);
  absl::Status Watch(Pipe out, Pipe err);
  std::unique_ptr<output::WorkerPipe> Listen(Pipe pipe, bool is_stderr);
  void TakeLine(absl::string_view line, bool is_stderr);
  void OnExit();
  void OnPipeEnd();
  void Finish();

  EventLoop& loop_;
  os::Process process_;
  const Callbacks callbacks_;
  output::StderrTail tail_;
  std::unique_ptr<output::WorkerPipe> out_, err_;
  Phase phase_ = Phase::kRunning;
  os::ExitStatus exit_;  // not while it runs
  std::optional<EventLoop::TimerId> linger_timer_;
};

}  // namespace hvd::agent::process

#endif  // AGENT_PROCESS_CHILD_PROCESS_H_
