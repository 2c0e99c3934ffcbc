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
#include "agent/process/adoption.h"
#include "agent/process/worker_process.h"
#include "base/event_loop.h"
#include "base/os/liveness_watch.h"
#include "base/os/other_process.h"
#include "proto/agent.pb.h"
#include "rendezvous/bootstrap/worker_word.h"

namespace hvd::agent {

// Belongs to the loop's thread; the end of that thread also ends the process, if it is a child. The
// destructor ends the process (WorkerProcess).
class Worker {
 public:
  struct Callbacks {
    std::function<void(pb::WorkerOutput)> on_output;
    // The followed process (Follow) is dying, or this one. May be called again.
    std::function<void()> on_dying;
    // The process has ended, its output is complete, and its process group is gone. Last callback;
    // it may destroy the worker.
    std::function<void(pb::WorkerExited)> on_exited;
  };

  // The number of calls of CheckStopped that must find a worker stopped before it is killed.
  static constexpr int kStoppedChecks = 10;

  // Starts a child as the worker, or makes `adoption`'s process the worker; nullptr: a child.
  // Errors: those of ChildProcess::Spawn or Adoption::Start.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(EventLoop& loop, const LaunchPlan& plan,
                                                       const pb::StartWorker& start,
                                                       const WorkerPlace& place,
                                                       process::Adoption* adoption,
                                                       Callbacks callbacks);
  ~Worker();

  pid_t pid() const { return process_->pid(); }
  uint32_t slot() const { return slot_; }

  // Asks the process to end now (once), and kills it after `grace`, or after the rest of the grace
  // of an earlier call. Without a grace a child is only killed.
  void Stop(absl::Duration grace);

  // Whether the sender of `hello` proves that it belongs to this worker.
  // Errors: those of CheckWorkerWord.
  absl::Status CheckHello(const pb::WorkerHello& hello) const {
    return rendezvous::bootstrap::CheckWorkerWord(word_, hello);
  }

  // Whether `asker` is this worker's process, or one that it has started.
  bool Includes(pid_t asker) const { return process_->Includes(asker); }

  // Makes `asker`, a process of this worker, the followed one: its death is the worker's, and its
  // stack is shown. Returns false, and changes nothing, if another followed process still lives, or
  // if `asker` can't be opened.
  bool Follow(pid_t asker);

  // A liveness page for the followed process to hold; borrowed.
  // Errors: those of LivenessWatch::Start.
  absl::StatusOr<int> WatchProcess();

  // The descriptor to which the followed process writes its stack on StackProbe's signal; borrowed.
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
  // What it was told while it ran.
  enum class Told { kNothing, kToEnd, kKilled };

  Worker(EventLoop& loop, const pb::StartWorker& start, std::string word, Callbacks callbacks);
  process::WorkerProcess::Callbacks Listen();
  void TakeLine(absl::string_view line, bool is_stderr);
  void Kill();
  void OnDeath();
  pb::WorkerExited Report(const process::ProcessEnd& end) const;

  EventLoop& loop_;
  const uint64_t id_;
  const int rank_;
  const uint32_t slot_;
  const std::string word_;
  const Callbacks callbacks_;
  std::unique_ptr<process::WorkerProcess> process_;
  std::optional<inspection::OomCounter> oom_;
  std::optional<os::OtherProcess> asker_;  // the followed process; empty: none yet
  std::unique_ptr<os::LivenessWatch> watch_;
  std::shared_ptr<int> watch_token_;               // expired for callbacks of an earlier watch
  std::unique_ptr<inspection::StackProbe> probe_;  // of asker_, or nullptr
  int stopped_checks_ = 0;                         // in a row
  Told told_ = Told::kNothing;
  std::optional<EventLoop::TimerId> kill_timer_;
};

}  // namespace hvd::agent

#endif  // AGENT_WORKER_H_
