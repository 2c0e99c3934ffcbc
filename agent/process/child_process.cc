#include "agent/process/child_process.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/os/process_tree.h"
#include "base/status_macros.h"

namespace hvd::agent::process {
namespace {

// Returns the read end of a pipe that contains `input`. A pipe needs no writer thread, and unlike a
// file it can't be read again by a child of the worker.
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

absl::StatusOr<std::unique_ptr<WorkerProcess>> ChildProcess::Spawn(EventLoop& loop,
                                                                   os::SpawnOptions options,
                                                                   const std::string& input,
                                                                   Callbacks callbacks) {
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(Pipe err, MakePipe());
  Fd held;
  if (!input.empty()) {
    ASSIGN_OR_RETURN(held, HoldInput(input));
  }
  options.stdin_fd = held.get();
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
  RETURN_IF_ERROR(FAILPOINT_STATUS("agent.worker.forked"));
  std::unique_ptr<ChildProcess> child(
      new ChildProcess(loop, std::move(process), std::move(callbacks)));
  RETURN_IF_ERROR(child->Watch(std::move(out), std::move(err)));
  return child;
}

ChildProcess::ChildProcess(EventLoop& loop, os::Process process, Callbacks callbacks)
    : loop_(loop), process_(std::move(process)), callbacks_(std::move(callbacks)) {}

ChildProcess::~ChildProcess() {
  loop_.Forget(process_.pidfd());
  if (linger_timer_.has_value()) loop_.Cancel(*linger_timer_);
}

absl::Status ChildProcess::Watch(Pipe out, Pipe err) {
  out_ = Listen(std::move(out), /*is_stderr=*/false);
  err_ = Listen(std::move(err), /*is_stderr=*/true);
  return loop_.Watch(process_.pidfd(), EPOLLIN, [this](uint32_t) { OnExit(); });
}

// Keeps the read end and closes the write end, of which the process has a copy; otherwise the pipe
// would never end.
std::unique_ptr<output::WorkerPipe> ChildProcess::Listen(Pipe pipe, bool is_stderr) {
  return std::make_unique<output::WorkerPipe>(
      loop_, std::move(pipe.read),
      [this, is_stderr](absl::string_view line) { TakeLine(line, is_stderr); },
      [this] { OnPipeEnd(); });
}

void ChildProcess::TakeLine(absl::string_view line, bool is_stderr) {
  if (is_stderr) tail_.Append(line);
  callbacks_.on_line(line, is_stderr);
}

absl::StatusOr<bool> ChildProcess::Includes(pid_t asker) const {
  return os::DescendsFrom(asker, getpid());
}

void ChildProcess::AskToEnd(absl::Duration /*grace*/) { process_.SignalGroup(SIGTERM); }

void ChildProcess::Kill() { process_.SignalGroup(SIGKILL); }

void ChildProcess::set_paused(bool paused) {
  out_->set_paused(paused);
  err_->set_paused(paused);
}

void ChildProcess::TakeOutput() {
  for (output::WorkerPipe* const pipe : {out_.get(), err_.get()}) {
    pipe->ReadRest();
    pipe->EndLine();
  }
}

void ChildProcess::OnExit() {
  // The process is reaped by the destructor, after Finish: until then its number can't be reused,
  // so Finish can safely kill the process group.
  exit_ = process_.PeekExit().value_or(os::ExitStatus());
  loop_.Forget(process_.pidfd());
  phase_ = Phase::kReading;
  out_->ReadRest();
  err_->ReadRest();
  if (!out_->open() && !err_->open()) return Finish();
  // A process that the worker has started may still write to the pipes.
  phase_ = Phase::kLingering;
  linger_timer_ = loop_.After(kLingerTime, [this] { Finish(); });
}

void ChildProcess::OnPipeEnd() {
  if (phase_ != Phase::kLingering || out_->open() || err_->open()) return;
  // Not called from here: the calling pipe belongs to this object, which Finish may destroy.
  phase_ = Phase::kFinishing;
  loop_.Cancel(*linger_timer_);
  linger_timer_ = loop_.After(absl::ZeroDuration(), [this] { Finish(); });
}

void ChildProcess::Finish() {
  phase_ = Phase::kFinishing;
  // Kills the rest of the group first, so that nothing more is written after the pipes are read.
  Kill();
  out_->ReadRest();
  err_->ReadRest();
  out_->Close();
  err_->Close();
  ProcessEnd end{exit_, "", {tail_.lines().begin(), tail_.lines().end()}};
  // A copy, since the callback may destroy this object and so callbacks_.
  const auto on_end = callbacks_.on_end;
  on_end(std::move(end));
}

}  // namespace hvd::agent::process
