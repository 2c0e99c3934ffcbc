#include "agent/process/adoption.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/inspection/process_state.h"
#include "agent/process/adoption_lines.h"
#include "agent/protocol/agent_protocol.h"
#include "base/clock.h"
#include "base/os/process_tree.h"
#include "base/status_macros.h"

namespace hvd::agent::process {

absl::StatusOr<os::OtherProcess> FindAdoptee(pid_t pid) {
  const auto refused = [pid](const std::string& why) {
    return absl::FailedPreconditionError(absl::StrCat("--adopt ", pid, ": ", why));
  };
  absl::StatusOr<os::OtherProcess> process = os::OtherProcess::Open(pid);
  if (!process.ok()) return refused("there is no such process");
  struct stat info = {};
  if (stat(absl::StrCat("/proc/", pid).c_str(), &info) == 0 && info.st_uid != geteuid()) {
    return refused(
        absl::StrCat("it belongs to user ", info.st_uid, ", this process to user ", geteuid()));
  }
  // Otherwise any process of this user could be killed by adopting it.
  const absl::StatusOr<bool> descends = os::DescendsFrom(getpid(), pid);
  if (!descends.ok()) return refused(std::string(descends.status().message()));
  if (getppid() != pid && !*descends) {
    return refused("that process has not started this one; a process has its own agent adopt it");
  }
  if (!IsPipe(STDIN_FILENO) || !IsPipe(STDOUT_FILENO)) {
    return refused("stdin and stdout must be pipes to that process");
  }
  return process;
}

// The adopted process as a WorkerProcess. Its destructor waits for the process to leave the job.
class Adoption::Adopted : public WorkerProcess {
 public:
  explicit Adopted(Adoption& adoption) : adoption_(adoption) {}
  ~Adopted() override { adoption_.StopAndWait(); }

  pid_t pid() const override { return adoption_.process_.pid(); }
  bool running() const override { return adoption_.phase_ == Phase::kWorking; }
  absl::StatusOr<bool> Includes(pid_t asker) const override {
    if (asker == pid()) return true;
    return os::DescendsFrom(asker, pid());
  }
  void AskToEnd(absl::Duration grace) override { adoption_.Send(StopLine(grace)); }
  absl::Duration LeastGrace() const override { return adoption_.least_grace_; }
  void Kill() override { adoption_.killed_ = adoption_.process_.Signal(SIGKILL); }
  void set_paused(bool /*paused*/) override {}
  void TakeOutput() override {}

 private:
  Adoption& adoption_;
};

Adoption::Adoption(EventLoop& loop, os::OtherProcess process, int in, int out,
                   absl::Duration least_grace)
    : loop_(loop), process_(std::move(process)), in_(in), out_(out), least_grace_(least_grace) {}

Adoption::~Adoption() { Forget(); }

absl::Status Adoption::Watch(std::function<void()> on_withdrawn) {
  on_withdrawn_ = std::move(on_withdrawn);
  RETURN_IF_ERROR(SetNonBlocking(in_));
  RETURN_IF_ERROR(SetNonBlocking(out_));
  RETURN_IF_ERROR(loop_.Watch(in_, EPOLLIN, [this](uint32_t) { OnReadable(); }));
  return loop_.Watch(process_.fd(), EPOLLIN, [this](uint32_t) { OnProcessEnd(); });
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> Adoption::Start(
    const std::map<std::string, std::string>& own, const std::map<std::string, std::string>& wanted,
    WorkerProcess::Callbacks callbacks) {
  if (phase_ != Phase::kWaiting) {
    return absl::FailedPreconditionError("the agent's own process has left the job");
  }
  phase_ = Phase::kWorking;
  callbacks_ = std::move(callbacks);
  Send(StartLine(own, wanted));
  return std::make_unique<Adopted>(*this);
}

void Adoption::SendError(const std::string& error) { Send(ErrorLine(error)); }

void Adoption::SendJobEnd(const std::string& summary) {
  if (phase_ == Phase::kWaiting) SendError(summary);
}

// The result is ignored: the few short lines fit into any pipe, and the process's answers show
// whether it has read them.
void Adoption::Send(const std::string& line) const { WriteSome(out_, line); }

bool Adoption::ReadOnce() {
  char buffer[4096];
  const IoResult got = ReadSome(in_, buffer, sizeof(buffer));
  lines_ended_ = lines_ended_ || got.end;
  splitter_.Append({buffer, got.bytes}, [this](absl::string_view line) {
    const std::optional<int> code = ParseExitLine(line);
    if (!exit_code_.has_value()) exit_code_ = code;
    if (!code.has_value()) {
      fprintf(stderr, "%s: its process has sent a line that is not {\"exit\": CODE}\n",
              protocol::kAgentProgram);
    }
  });
  return got.bytes > 0;
}

void Adoption::OnReadable() {
  ReadOnce();
  if (exit_code_.has_value()) return Over(End());
  if (!lines_ended_) return;
  loop_.Forget(in_);
  // The pipe of a process that ends is closed a little before its pidfd becomes readable. After the
  // time, the end of the pipe counts alone: the process may go on without the job.
  linger_timer_ = loop_.After(kLingerTime, [this] { Over(End()); });
  if (phase_ == Phase::kWorking) callbacks_.on_dying();
}

// Lines that the process wrote before it ended are still in the pipe: an {"exit"} there counts more
// than the way it ended.
void Adoption::OnProcessEnd() {
  while (!lines_ended_ && ReadOnce()) {
  }
  Over(End());
}

ProcessEnd Adoption::End() const {
  ProcessEnd end;
  if (exit_code_.has_value()) {
    end.status.exit_code = *exit_code_;
    return end;
  }
  const std::optional<os::ExitStatus> seen = inspection::EndOf(process_.pid());
  // The kernel shows the code 0 to readers without permission, and for a process that has just
  // vanished. So 0 means "not known".
  const bool known = seen.has_value() && (seen->signal != 0 || seen->exit_code != 0);
  if (process_.HasEnded() && killed_) {
    end.status.signal = SIGKILL;
  } else if (process_.HasEnded() && known && process_.Signal(0)) {  // not reaped yet
    end.status = *seen;
  } else {
    end.status.exit_code = 1;
    end.unknown = process_.HasEnded()
                      ? "ended without reporting an exit code to its agent"
                      : "closed the connection to its agent without reporting an exit code";
  }
  return end;
}

void Adoption::Over(ProcessEnd end) {
  const bool worked = phase_ == Phase::kWorking;
  phase_ = Phase::kOver;
  Forget();
  // A copy, since the callback may replace callbacks_.
  const auto on_end = callbacks_.on_end;
  worked ? on_end(std::move(end)) : on_withdrawn_();
}

void Adoption::Forget() {
  loop_.Forget(in_);
  loop_.Forget(process_.fd());
  if (linger_timer_.has_value()) loop_.Cancel(*linger_timer_);
}

void Adoption::StopAndWait() {
  // Blocks the loop's thread. A worker that still works is destroyed only when the agent ends.
  if (std::exchange(phase_, Phase::kOver) != Phase::kWorking) return;
  Forget();
  Send(StopLine(least_grace_));
  Clock& clock = Clock::Real();
  const absl::Time deadline = clock.Now() + least_grace_;
  while (!exit_code_.has_value() && !process_.HasEnded()) {
    const absl::Duration left = deadline - clock.Now();
    if (left <= absl::ZeroDuration()) {
      process_.Signal(SIGKILL);
      return;
    }
    pollfd signs[] = {{process_.fd(), POLLIN, 0}, {lines_ended_ ? -1 : in_, POLLIN, 0}};
    // Plus 1: the rest of a millisecond would otherwise be spent in a busy loop.
    poll(signs, 2, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (!lines_ended_) ReadOnce();
  }
}

}  // namespace hvd::agent::process
