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
#include "rehearsal/page/fault_page.h"
#include "rendezvous/bootstrap/worker_word.h"

namespace hvd::agent {

// Not thread-safe: belongs to the loop's thread. The end of that thread also ends a child process.
// The destructor ends the process (see WorkerProcess).
class Worker {
 public:
  struct Callbacks {
    std::function<void(pb::WorkerOutput)> on_output;
    // The worker's process is dying. May be called more than once.
    std::function<void()> on_dying;
    // The followed process (see Follow) is dying or executes another program; CheckReplaced tells
    // which.
    std::function<void()> on_lost;
    // The process has ended, its output is complete, and a child's process group has been killed.
    // Last callback; it may destroy the worker.
    std::function<void(pb::WorkerExited)> on_exited;
  };

  // The number of calls of CheckStopped that must find a worker stopped before it is killed.
  static constexpr int kStoppedChecks = 10;
  // The same for CheckReplaced: the time for a program to call hvd.init(), as a script does that
  // executes itself again.
  static constexpr int kReplacedChecks = 60;

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

  // Asks the process to end, at the first call only, and kills it after `grace`. A later call can
  // only shorten the remaining time. If `grace` is zero, a child is killed at once.
  void Stop(absl::Duration grace);

  // Whether the sender of `hello` proves that it belongs to this worker.
  // Errors: those of CheckWorkerWord.
  absl::Status CheckHello(const pb::WorkerHello& hello) const {
    return rendezvous::bootstrap::CheckWorkerWord(word_, hello);
  }

  // See WorkerProcess::Includes.
  absl::StatusOr<bool> Includes(pid_t asker) const { return process_->Includes(asker); }

  // Makes `asker`, a process of this worker, the followed process: the one whose death counts as
  // the worker's and whose stack is sampled. Returns false and changes nothing if another followed
  // process still lives, or if `asker` can't be opened.
  bool Follow(pid_t asker);

  // A liveness page for the followed process to hold; borrowed.
  // Errors: those of LivenessWatch::Start.
  absl::StatusOr<int> WatchProcess();

  // The descriptor to which the followed process writes its stack on StackProbe's signal; borrowed.
  // Errors: those of StackProbe::Create.
  absl::StatusOr<int> OfferStackPipe();

  // In a rehearsal: the page of the faults that the followed process does to itself; borrowed.
  // Errors: those of FaultPage::Create.
  absl::StatusOr<int> OfferFaultPage();

  // Does the harm to the followed process, or orders it from that process.
  // Errors:
  //   - FailedPrecondition: the process has ended, or has no page yet; says which.
  absl::Status Harm(const pb::Fault& fault);
  // Whether the harm that was ordered last has been done.
  bool IsHarmed() const { return faults_ == nullptr || faults_->done(); }
  // Ends a harm that lasts.
  void EndHarm();

  // Samples the worker's stack; see StackProbe::Ask.
  void Sample(std::function<void(inspection::StackSample)> answer);

  // To be called at a fixed interval: kills the worker once kStoppedChecks calls in a row have
  // found it stopped by a signal.
  void CheckStopped();

  // To be called at a fixed interval after on_lost, as long as it returns true: kills the worker
  // once kReplacedChecks calls have found that the followed process executes another program
  // without hvd.shutdown(), and that no hvd.init() has followed. Returns whether that is possible.
  bool CheckReplaced();

  // See WorkerProcess::set_paused.
  void set_paused(bool paused);

  // Sets the rank of the output from now on; what the process has written so far gets the earlier
  // one. Does nothing if no world can have that rank.
  void SetOutputRank(uint32_t rank);

 private:
  // The strongest request that was sent to the process while it ran.
  enum class Order { kNone, kStop, kKill };

  Worker(EventLoop& loop, const pb::StartWorker& start, std::string word, Callbacks callbacks);
  process::WorkerProcess::Callbacks Listen();
  void TakeLine(absl::string_view line, bool is_stderr);
  void Kill();
  pid_t Victim() const;
  void OnDeath();
  pb::WorkerExited Report(const process::ProcessEnd& end) const;

  EventLoop& loop_;
  const uint64_t id_;
  int rank_;  // of its output
  const uint32_t slot_;
  const std::string word_;
  const Callbacks callbacks_;
  std::unique_ptr<process::WorkerProcess> process_;
  std::optional<inspection::OomCounter> oom_;
  std::optional<os::OtherProcess> asker_;  // the followed process; empty: none yet
  std::unique_ptr<os::LivenessWatch> watch_;
  std::shared_ptr<int> watch_token_;               // expired for callbacks from earlier watches
  std::unique_ptr<inspection::StackProbe> probe_;  // of asker_, or nullptr
  std::unique_ptr<rehearsal::page::FaultPage> faults_;
  std::optional<pid_t> paused_by_harm_;
  int stopped_checks_ = 0;  // in a row
  // The followed process that was lost without hvd.shutdown(), and may execute another program;
  // empty: there is none, or it has ended.
  std::optional<os::OtherProcess> replaced_;
  int replaced_checks_ = 0;  // that found another program
  Order order_ = Order::kNone;
  std::optional<EventLoop::TimerId> kill_timer_;
};

}  // namespace hvd::agent

#endif  // AGENT_WORKER_H_
