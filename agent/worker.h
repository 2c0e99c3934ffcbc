// One worker process: from its start to the report on its end.
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

// Belongs to the loop's thread, whose end also ends the process. Destroying it kills the process,
// but not the rest of its group.
class Worker {
 public:
  struct Callbacks {
    std::function<void(pb::WorkerOutput)> on_output;
    // The process that counts (Adopt) is dying.
    std::function<void()> on_dying;
    // The process has ended, its output is complete, and its process group is gone. Last callback;
    // it may destroy the worker.
    std::function<void(pb::WorkerExited)> on_exited;
  };

  // How long after the process's end others may go on writing to its output before they are killed.
  static constexpr absl::Duration kLingerTime = absl::Milliseconds(200);

  // After so many calls of CheckStopped it is not waited for any longer.
  static constexpr int kStoppedChecks = 10;

  // Starts it in a process group of its own.   Errors as Process::Spawn.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(EventLoop& loop, const LaunchPlan& plan,
                                                       const pb::StartWorker& start,
                                                       const WorkerPlace& place,
                                                       Callbacks callbacks);
  ~Worker();

  pid_t pid() const { return process_.pid(); }
  uint32_t slot() const { return slot_; }

  // SIGTERM to the group now (once), SIGKILL after `grace`, or after what is left of the grace of
  // an earlier call. Without any grace there is only SIGKILL.
  void Stop(absl::Duration grace);

  // Whether a process that says hello shows that it belongs to this worker.   As CheckWorkerWord.
  absl::Status CheckHello(const pb::WorkerHello& hello) const {
    return rendezvous::bootstrap::CheckWorkerWord(word_, hello);
  }

  // Whether `asker`, a process of this worker, is the one that counts from now on: whose death is
  // the worker's, and whose stack is shown. It is not while an earlier one lives.
  bool Adopt(pid_t asker);

  // A page for the process that counts to hold; borrowed.   Errors as LivenessWatch::Start.
  absl::StatusOr<int> WatchProcess();

  // Where the process that counts writes its stack on StackProbe's signal; borrowed.
  //   Errors as StackProbe::Create.
  absl::StatusOr<int> OfferStackPipe();

  // Finds out what it is doing; see StackProbe::Ask.
  void Sample(std::function<void(inspection::StackSample)> answer);

  // To be called once a second: kills it if a signal has stopped it all that time.
  void CheckStopped();

  // Whether its output is left in its pipes. Its end is noticed all the same.
  void set_paused(bool paused);

 private:
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
  std::optional<os::ExitStatus> exit_;
  std::optional<os::OtherProcess> asker_;  // that counts; none: nobody has asked yet
  std::unique_ptr<os::LivenessWatch> watch_;
  std::shared_ptr<int> watch_token_;               // news of an earlier watch find it expired
  std::unique_ptr<inspection::StackProbe> probe_;  // of asker_, or nullptr
  int stopped_checks_ = 0;                         // in a row
  bool killed_by_us_ = false;
  bool terminated_ = false;
  bool finishing_ = false;
  std::optional<EventLoop::TimerId> kill_timer_, linger_timer_;
};

}  // namespace hvd::agent

#endif  // AGENT_WORKER_H_
