// A worker process, from its start to the report of its exit.
#ifndef AGENT_WORKER_H_
#define AGENT_WORKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/inspection/oom_counter.h"
#include "agent/inspection/stack_probe.h"
#include "agent/launch_plan.h"
#include "agent/output/stderr_tail.h"
#include "agent/output/worker_pipe.h"
#include "base/event_loop.h"
#include "base/os/liveness_watch.h"
#include "base/os/other_process.h"
#include "base/os/process.h"
#include "proto/agent.pb.h"
#include "rendezvous/bootstrap/worker_word.h"

namespace hvd::agent {

// Belongs to the loop's thread; the end of that thread also ends the process. The destructor kills
// the process, but not the rest of its group.
class Worker {
 public:
  struct Callbacks {
    std::function<void(pb::WorkerOutput)> on_output;
    // The adopted process (Adopt) is dying.
    std::function<void()> on_dying;
    // The process has ended, its output is complete, and its process group is gone. Last callback;
    // it may destroy the worker.
    std::function<void(pb::WorkerExited)> on_exited;
  };

  // The time from the process's end until the remaining writers of its output are killed.
  static constexpr absl::Duration kLingerTime = absl::Milliseconds(200);

  // The number of calls of CheckStopped that must find a worker stopped before it is killed.
  static constexpr int kStoppedChecks = 10;

  // Starts the worker in its own process group.
  // Errors: those of Process::Spawn.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(EventLoop& loop, const LaunchPlan& plan,
                                                       const pb::StartWorker& start,
                                                       const WorkerPlace& place,
                                                       Callbacks callbacks);
  ~Worker();

  pid_t pid() const { return process_.pid(); }
  uint32_t slot() const { return slot_; }

  // Sends SIGTERM to the group now (once), and SIGKILL after `grace`, or after the rest of the
  // grace of an earlier call. Without a grace it sends only SIGKILL.
  void Stop(absl::Duration grace);

  // Whether the sender of `hello` proves that it belongs to this worker.
  // Errors: those of CheckWorkerWord.
  absl::Status CheckHello(const pb::WorkerHello& hello) const {
    return rendezvous::bootstrap::CheckWorkerWord(word_, hello);
  }

  // Makes `asker`, a process of this worker, the adopted one: its death is the worker's, and its
  // stack is shown. Returns false, and changes nothing, if another adopted process still lives, or
  // if `asker` can't be opened.
  bool Adopt(pid_t asker);

  // A liveness page for the adopted process to hold; borrowed.
  // Errors: those of LivenessWatch::Start.
  absl::StatusOr<int> WatchProcess();

  // The descriptor to which the adopted process writes its stack on StackProbe's signal; borrowed.
  // Errors: those of StackProbe::Create.
  absl::StatusOr<int> OfferStackPipe();

  // Samples what the worker is doing; see StackProbe::Ask.
  void Sample(std::function<void(inspection::StackSample)> answer);

  // To be called at a fixed interval: kills the worker once kStoppedChecks calls in a row have
  // found it stopped by a signal.
  void CheckStopped();

  // Whether its output is left in its pipes. Its end is noticed even then.
  void set_paused(bool paused);

 private:
  // Of its process and its output:
  //
  //   kRunning --the process ends--> kReading --a pipe is open still--> kLingering
  //                                     |                                   |
  //                                     +--both are closed--> kFinishing <--+ both are closed, or
  //                                                                           kLingerTime is over
  enum class Phase {
    kRunning,
    kReading,    // what its pipes hold
    kLingering,  // for others that have its output open
    kFinishing,  // on_exited follows
  };
  // The strongest that was sent while it ran.
  enum class Signal { kNone, kTerm, kKill };

  Worker(EventLoop& loop, const pb::StartWorker& start, std::string word, os::Process process,
         Callbacks callbacks);
  absl::Status Watch(Pipe out, Pipe err);
  std::unique_ptr<output::WorkerPipe> Listen(Pipe pipe, bool is_stderr);
  void TakeLine(absl::string_view line, bool is_stderr);
  void KillGroup();
  void OnDeath();
  void OnExit();
  void OnPipeEnd();
  void Finish();
  pb::WorkerExited Report() const;

  EventLoop& loop_;
  const uint64_t id_;
  const int rank_;
  const uint32_t slot_;
  const std::string word_;
  os::Process process_;
  const Callbacks callbacks_;
  const inspection::OomCounter oom_;
  output::StderrTail tail_;
  std::unique_ptr<output::WorkerPipe> out_, err_;
  std::optional<os::OtherProcess> asker_;  // the adopted process; empty: none yet
  std::unique_ptr<os::LivenessWatch> watch_;
  std::shared_ptr<int> watch_token_;               // expired for callbacks of an earlier watch
  std::unique_ptr<inspection::StackProbe> probe_;  // of asker_, or nullptr
  int stopped_checks_ = 0;                         // in a row
  Signal signal_ = Signal::kNone;
  Phase phase_ = Phase::kRunning;
  os::ExitStatus exit_;  // not while it runs
  std::optional<EventLoop::TimerId> kill_timer_, linger_timer_;
};

}  // namespace hvd::agent

#endif  // AGENT_WORKER_H_
