#include "agent/worker.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

#include "agent/inspection/process_state.h"
#include "agent/process/child_process.h"
#include "base/status_macros.h"

namespace hvd::agent {
namespace {

// Added to a worker's oom_score_adj. When memory runs out, the kernel should kill a worker and not
// the agent, whose death would end all workers of the host. On the kernel's scale 100 is a tenth of
// the machine's memory.
constexpr int kOomScoreMore = 100;

constexpr uint32_t kMostRanks = 1 << 20;

using rehearsal::page::FaultPage;

// What the worker's process does to itself; nullopt: it does nothing of that.
std::optional<FaultPage::Order> OrderOf(pb::Fault::Kind kind) {
  switch (kind) {
    case pb::Fault::EXCEPTION:
      return FaultPage::Order::kException;
    case pb::Fault::SLOW_RANK:
      return FaultPage::Order::kSlowRank;
    case pb::Fault::SLOW_LINK:
      return FaultPage::Order::kSlowLink;
    case pb::Fault::CUT_LINK:
      return FaultPage::Order::kCutLink;
    case pb::Fault::WRONG_VALUE:
      return FaultPage::Order::kWrongValue;
    case pb::Fault::FULL_DISK:
      return FaultPage::Order::kFullDisk;
    default:
      return std::nullopt;
  }
}

constexpr char kReplacedFor[] =
    "it executed another program (exec) without hvd.shutdown(), and no hvd.init() followed in "
    "60 s; call hvd.shutdown() before exec, or start the program as a child";

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(EventLoop& loop, const LaunchPlan& plan,
                                                      const pb::StartWorker& start,
                                                      const WorkerPlace& place,
                                                      process::Adoption* adoption,
                                                      Callbacks callbacks) {
  WorkerPlace own_place = place;
  // A new one for each worker: an earlier worker's leftover process must not be taken for the new
  // one.
  own_place.word = rendezvous::bootstrap::NewWorkerWord();
  const std::map<std::string, std::string> variables = WorkerEnvironment(plan, start, own_place);
  std::unique_ptr<Worker> worker(new Worker(loop, start, own_place.word, std::move(callbacks)));
  if (adoption != nullptr) {
    ASSIGN_OR_RETURN(worker->process_,
                     adoption->Start(plan.environment, variables, worker->Listen()));
  } else {
    os::SpawnOptions options;
    options.file = plan.file;
    options.argv = plan.argv;
    options.environment = AsEntries(variables);
    options.working_directory = plan.working_directory;
    options.oom_score_more = kOomScoreMore;
    ASSIGN_OR_RETURN(worker->process_, process::ChildProcess::Spawn(loop, std::move(options),
                                                                    plan.input, worker->Listen()));
  }
  worker->oom_.emplace(worker->pid());
  return worker;
}

Worker::Worker(EventLoop& loop, const pb::StartWorker& start, std::string word, Callbacks callbacks)
    : loop_(loop),
      id_(start.worker_id()),
      rank_(start.placement().rank()),
      slot_(start.slot()),
      word_(std::move(word)),
      callbacks_(std::move(callbacks)) {}

Worker::~Worker() {
  if (kill_timer_.has_value()) loop_.Cancel(*kill_timer_);
}

process::WorkerProcess::Callbacks Worker::Listen() {
  return {[this](absl::string_view line, bool is_stderr) { TakeLine(line, is_stderr); },
          [this] { callbacks_.on_dying(); },
          [this](const process::ProcessEnd& end) {
            // A copy, since the callback may destroy this worker and so its callbacks_.
            const auto on_exited = callbacks_.on_exited;
            on_exited(Report(end));
          }};
}

void Worker::TakeLine(absl::string_view line, bool is_stderr) {
  pb::WorkerOutput output;
  output.set_rank(rank_);
  output.set_worker_id(id_);
  output.set_is_stderr(is_stderr);
  output.set_line(line.data(), line.size());
  callbacks_.on_output(std::move(output));
}

bool Worker::Follow(pid_t asker) {
  if (asker_.has_value() && asker_->pid() != asker && !asker_->HasEnded()) return false;
  auto process = os::OtherProcess::Open(asker);
  if (!process.ok()) return false;
  asker_ = *std::move(process);
  replaced_.reset();
  probe_.reset();
  return true;
}

absl::StatusOr<int> Worker::WatchProcess() {
  // The watch's thread posts to the loop. The task may run after the watch was replaced or the
  // worker destroyed; the expired token then makes it do nothing.
  watch_token_ = std::make_shared<int>();
  const std::weak_ptr<int> token = watch_token_;
  ASSIGN_OR_RETURN(watch_, os::LivenessWatch::Start([this, token, loop = &loop_] {
                     loop->Post([this, token] {
                       if (!token.expired()) OnDeath();
                     });
                   }));
  return watch_->page_fd();
}

absl::StatusOr<int> Worker::OfferStackPipe() {
  ASSIGN_OR_RETURN(probe_, inspection::StackProbe::Create(loop_, asker_->pid()));
  return probe_->fd();
}

absl::StatusOr<int> Worker::OfferFaultPage() {
  // Another process of this worker, such as one that it executes, continues with the same page.
  if (faults_ == nullptr) {
    ASSIGN_OR_RETURN(faults_, rehearsal::page::FaultPage::Create());
  }
  return faults_->fd();
}

pid_t Worker::Victim() const {
  return asker_.has_value() && !asker_->HasEnded() ? asker_->pid() : pid();
}

absl::Status Worker::Harm(const pb::Fault& fault) {
  if (!process_->running()) return absl::FailedPreconditionError("its process has ended");
  // Neither is an order of this agent's: the worker must count as any that the kernel or a user
  // kills or stops.
  if (fault.kind() == pb::Fault::KILL || fault.kind() == pb::Fault::STOP) {
    const bool stops = fault.kind() == pb::Fault::STOP;
    if (stops) paused_by_harm_ = Victim();
    if (kill(Victim(), stops ? SIGSTOP : SIGKILL) == 0) return absl::OkStatus();
    return absl::FailedPreconditionError("its process has ended");
  }
  const std::optional<FaultPage::Order> order = OrderOf(fault.kind());
  if (!order.has_value()) return absl::FailedPreconditionError("no worker can do that");
  if (faults_ == nullptr) return absl::FailedPreconditionError("it has not called hvd.init()");
  faults_->Give(*order, absl::Milliseconds(fault.delay_ms()));
  return absl::OkStatus();
}

void Worker::EndHarm() {
  if (faults_ != nullptr) faults_->Withdraw();
  // Only if it is still that process.
  if (paused_by_harm_.has_value() && process_->running() && *paused_by_harm_ == Victim()) {
    kill(*paused_by_harm_, SIGCONT);
  }
  paused_by_harm_.reset();
}

void Worker::Sample(std::function<void(inspection::StackSample)> answer) {
  if (probe_ == nullptr) return answer(inspection::SampleByKernel(pid(), !process_->running()));
  probe_->Ask(std::move(answer));
}

void Worker::OnDeath() {
  std::optional<os::OtherProcess> lost = std::exchange(asker_, std::nullopt);
  // After hvd.shutdown() it may execute what it likes.
  if (watch_->busy()) replaced_ = std::move(lost);
  replaced_checks_ = 0;
  if (process_->running()) callbacks_.on_lost();
}

void Worker::CheckStopped() {
  // A worker that has been killed for this is not counted again: it is no longer stopped, but may
  // take long to exit.
  if (!process_->running() || stopped_checks_ >= kStoppedChecks) return;
  const bool asker_is_stopped =
      asker_.has_value() && !asker_->HasEnded() && inspection::IsStopped(asker_->pid());
  const bool stopped = inspection::IsStopped(pid()) || asker_is_stopped;
  stopped_checks_ = stopped ? stopped_checks_ + 1 : 0;
  if (stopped_checks_ >= kStoppedChecks) Kill();
}

bool Worker::CheckReplaced() {
  if (!process_->running() || !replaced_.has_value() || replaced_->HasEnded()) {
    replaced_.reset();
    return false;
  }
  if (inspection::IsExiting(replaced_->pid())) return true;
  if (++replaced_checks_ == kReplacedChecks) Kill();
  return true;
}

void Worker::set_paused(bool paused) { process_->set_paused(paused); }

void Worker::SetOutputRank(uint32_t rank) {
  if (rank >= kMostRanks) return;
  process_->TakeOutput();
  rank_ = static_cast<int>(rank);
}

void Worker::Stop(absl::Duration grace) {
  if (!process_->running()) return;
  grace = std::max(grace, process_->LeastGrace());
  if (grace <= absl::ZeroDuration()) return Kill();
  if (order_ == Order::kNone) {
    order_ = Order::kStop;
    process_->AskToEnd(grace);
  }
  // Of the present and the new kill timer the earlier one stays: a later call can shorten the
  // grace, but not extend it.
  const EventLoop::TimerId timer = loop_.After(grace, [this] { Kill(); });
  if (!kill_timer_.has_value() || timer < *kill_timer_) {
    if (kill_timer_.has_value()) loop_.Cancel(*kill_timer_);
    kill_timer_ = timer;
  } else {
    loop_.Cancel(timer);
  }
}

void Worker::Kill() {
  if (process_->running()) order_ = Order::kKill;
  process_->Kill();
}

pb::WorkerExited Worker::Report(const process::ProcessEnd& end) const {
  pb::WorkerExited report;
  report.set_worker_id(id_);
  report.set_exit_code(end.status.exit_code);
  report.set_signal(end.status.signal);
  report.set_core_dumped(end.status.core_dumped);
  report.set_unknown_end(end.unknown);
  // The counter has no process numbers. An OOM kill is assumed if SIGKILL ended the process, this
  // agent has not sent it, and the counter has grown since the start.
  report.set_out_of_memory(end.status.signal == SIGKILL && order_ != Order::kKill &&
                           oom_->HasGrown());
  if (stopped_checks_ >= kStoppedChecks) report.set_killed_for("it was stopped (SIGSTOP) for 10 s");
  if (replaced_checks_ >= kReplacedChecks) report.set_killed_for(kReplacedFor);
  for (const std::string& line : end.stderr_tail) report.add_stderr_tail(line);
  return report;
}

}  // namespace hvd::agent
