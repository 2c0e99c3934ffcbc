// A worker's process that its agent starts, with the pipes that take its output.
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

// The end of the loop's thread also ends the process. The destructor kills the process, but not the
// rest of its group.
class ChildProcess : public WorkerProcess {
 public:
  // The time from the process's end until the remaining writers of its output are killed.
  static constexpr absl::Duration kLingerTime = absl::Milliseconds(200);

  // Starts the process in a process group of its own, with `input` as the contents of its stdin and
  // pipes as its output, whatever `options` say of these.
  // Errors: those of Process::Spawn, and
  //   - ResourceExhausted: a pipe holds less than `input`.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Spawn(EventLoop& loop,
                                                              os::SpawnOptions options,
                                                              const std::string& input,
                                                              Callbacks callbacks);
  ~ChildProcess() override;

  pid_t pid() const override { return process_.pid(); }
  bool running() const override { return phase_ == Phase::kRunning; }
  // Whatever descends from the agent: orphans of its children become its own.
  bool Includes(pid_t asker) const override;
  // Sends SIGTERM to the process group.
  void AskToEnd(absl::Duration grace) override;
  absl::Duration LeastGrace() const override { return absl::ZeroDuration(); }
  // Kills the process group.
  void Kill() override;
  void set_paused(bool paused) override;

 private:
  // Of the process and its output:
  //
  //   kRunning --the process ends--> kReading --a pipe is open still--> kLingering
  //                                     |                                   |
  //                                     +--both are closed--> kFinishing <--+ both are closed, or
  //                                                                           kLingerTime is over
  enum class Phase {
    kRunning,
    kReading,    // what its pipes hold
    kLingering,  // for others that have its output open
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
