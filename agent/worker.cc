#include "agent/worker.h"

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/inspection/process_state.h"
#include "base/fd.h"
#include "base/status_macros.h"

namespace hvd::agent {
namespace {

// When memory runs out, the kernel should take a worker before the agent, whose death would end all
// workers of the host. A tenth of the machine's memory in the kernel's scale.
constexpr int kOomScoreMore = 100;

}  // namespace

namespace {

// The read end of a pipe that holds `input`. A pipe and not a file, since data that was read is
// gone.
// Errors:
//   - ResourceExhausted: the pipe holds less than `input`.
absl::StatusOr<Fd> HoldInput(const std::string& input) {
  ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  RETURN_IF_ERROR(SetNonBlocking(pipe.write.get()));
  const IoResult written = WriteSome(pipe.write.get(), input);
  if (written.bytes == input.size()) return std::move(pipe.read);
  return absl::ResourceExhaustedError(absl::StrCat("the worker's stdin takes only ", written.bytes,
                                                   " of ", input.size(),
                                                   " bytes (see fs.pipe-user-pages-soft)"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(EventLoop& loop, const LaunchPlan& plan,
                                                      const pb::StartWorker& start,
                                                      const WorkerPlace& place,
                                                      Callbacks callbacks) {
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(Pipe err, MakePipe());
  os::SpawnOptions options;
  options.file = plan.file;
  options.argv = plan.argv;
  WorkerPlace own_place = place;
  own_place.word = rendezvous::bootstrap::NewWorkerWord();
  options.environment = WorkerEnvironment(plan, start, own_place);
  options.working_directory = plan.working_directory;
  Fd input;
  if (!plan.input.empty()) {
    ASSIGN_OR_RETURN(input, HoldInput(plan.input));
  }
  options.stdin_fd = input.get();
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  options.oom_score_more = kOomScoreMore;
  ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
  std::unique_ptr<Worker> worker(
      new Worker(loop, start, own_place.word, std::move(process), std::move(callbacks)));
  RETURN_IF_ERROR(worker->Watch(std::move(out), std::move(err)));
  return worker;
}

Worker::Worker(EventLoop& loop, const pb::StartWorker& start, std::string word, os::Process process,
               Callbacks callbacks)
    : loop_(loop),
      id_(start.worker_id()),
      rank_(start.placement().rank()),
      slot_(start.slot()),
      word_(std::move(word)),
      process_(std::move(process)),
      callbacks_(std::move(callbacks)),
      oom_(process_.pid()) {}

Worker::~Worker() {
  loop_.Forget(process_.pidfd());
  if (kill_timer_.has_value()) loop_.Cancel(*kill_timer_);
  if (linger_timer_.has_value()) loop_.Cancel(*linger_timer_);
}

absl::Status Worker::Watch(Pipe out, Pipe err) {
  out_ = Listen(std::move(out), /*is_stderr=*/false);
  err_ = Listen(std::move(err), /*is_stderr=*/true);
  return loop_.Watch(process_.pidfd(), EPOLLIN, [this](uint32_t) { OnExit(); });
}

// Only the read end stays; the worker has the other.
std::unique_ptr<output::WorkerPipe> Worker::Listen(Pipe pipe, bool is_stderr) {
  return std::make_unique<output::WorkerPipe>(
      loop_, std::move(pipe.read),
      [this, is_stderr](absl::string_view line) { TakeLine(line, is_stderr); },
      [this] { OnPipeEnd(); });
}

void Worker::TakeLine(absl::string_view line, bool is_stderr) {
  if (is_stderr) tail_.Append(line);
  pb::WorkerOutput output;
  output.set_rank(rank_);
  output.set_is_stderr(is_stderr);
  output.set_line(line.data(), line.size());
  callbacks_.on_output(std::move(output));
}

bool Worker::Adopt(pid_t asker) {
  if (asker_.has_value() && asker_->pid() != asker && !asker_->HasEnded()) return false;
  auto process = os::OtherProcess::Open(asker);
  if (!process.ok()) return false;
  asker_ = *std::move(process);
  probe_.reset();
  return true;
}

absl::StatusOr<int> Worker::WatchProcess() {
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

void Worker::Sample(std::function<void(inspection::StackSample)> answer) {
  if (probe_ == nullptr)
    return answer(inspection::SampleByKernel(process_.pid(), phase_ != Phase::kRunning));
  probe_->Ask(std::move(answer));
}

void Worker::OnDeath() {
  asker_.reset();
  if (phase_ == Phase::kRunning) callbacks_.on_dying();
}

void Worker::CheckStopped() {
  // A worker that is being killed for this is no longer stopped, and may take long to exit.
  if (phase_ != Phase::kRunning || stopped_checks_ >= kStoppedChecks) return;
  const bool asker_is_stopped =
      asker_.has_value() && !asker_->HasEnded() && inspection::IsStopped(asker_->pid());
  const bool stopped = inspection::IsStopped(process_.pid()) || asker_is_stopped;
  stopped_checks_ = stopped ? stopped_checks_ + 1 : 0;
  if (stopped_checks_ >= kStoppedChecks) KillGroup();
}

void Worker::set_paused(bool paused) {
  out_->set_paused(paused);
  err_->set_paused(paused);
}

void Worker::Stop(absl::Duration grace) {
  if (phase_ != Phase::kRunning) return;
  if (grace <= absl::ZeroDuration()) return KillGroup();
  if (signal_ == Signal::kNone) {
    signal_ = Signal::kTerm;
    process_.SignalGroup(SIGTERM);
  }
  const EventLoop::TimerId timer = loop_.After(grace, [this] { KillGroup(); });
  if (!kill_timer_.has_value() || timer < *kill_timer_) {
    if (kill_timer_.has_value()) loop_.Cancel(*kill_timer_);
    kill_timer_ = timer;
  } else {
    loop_.Cancel(timer);
  }
}

void Worker::KillGroup() {
  if (phase_ == Phase::kRunning) signal_ = Signal::kKill;
  process_.SignalGroup(SIGKILL);
}

void Worker::OnExit() {
  // Not reaped before Finish: until then no other process group can have its number.
  exit_ = process_.PeekExit().value_or(os::ExitStatus());
  loop_.Forget(process_.pidfd());
  phase_ = Phase::kReading;
  out_->ReadRest();
  err_->ReadRest();
  if (!out_->open() && !err_->open()) return Finish();
  phase_ = Phase::kLingering;
  linger_timer_ = loop_.After(kLingerTime, [this] { Finish(); });
}

void Worker::OnPipeEnd() {
  if (phase_ != Phase::kLingering || out_->open() || err_->open()) return;
  // Not called from here: the calling pipe belongs to this worker, which Finish may destroy.
  phase_ = Phase::kFinishing;
  loop_.Cancel(*linger_timer_);
  linger_timer_ = loop_.After(absl::ZeroDuration(), [this] { Finish(); });
}

void Worker::Finish() {
  phase_ = Phase::kFinishing;
  KillGroup();
  out_->ReadRest();
  err_->ReadRest();
  out_->Close();
  err_->Close();
  // A copy, since the callback may destroy the worker.
  const auto on_exited = callbacks_.on_exited;
  on_exited(Report());
}

pb::WorkerExited Worker::Report() const {
  pb::WorkerExited report;
  report.set_worker_id(id_);
  report.set_exit_code(exit_.exit_code);
  report.set_signal(exit_.signal);
  report.set_core_dumped(exit_.core_dumped);
  report.set_out_of_memory(exit_.signal == SIGKILL && signal_ != Signal::kKill && oom_.HasGrown());
  if (stopped_checks_ >= kStoppedChecks) report.set_killed_for("it was stopped (SIGSTOP) for 10 s");
  for (const std::string& line : tail_.lines()) report.add_stderr_tail(line);
  return report;
}

}  // namespace hvd::agent
