#include "rendezvous/daemon/daemon_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/os/signals.h"
#include "base/status_macros.h"

namespace hvd::rendezvous::daemon {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  os::AddUnlessIgnored(signals, SIGHUP);
  return signals;
}

}  // namespace

absl::StatusOr<Fd> TakeDaemonSignals() {
  const sigset_t signals = StopSignals();
  // Blocked before any thread starts that does not block them itself. Later threads inherit the
  // mask, so only the signalfd receives the signals.
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  Fd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return absl::ResourceExhaustedError("no descriptor for signals is left");
  // A reader of stdout or stderr that has ended must not end the job.
  signal(SIGPIPE, SIG_IGN);
  // Nor must a file at its limit (ulimit -f), which fails as one on a full disk does.
  signal(SIGXFSZ, SIG_IGN);
  os::IgnoreNotices();
  return fd;
}

// Works only before Start: until then nobody reads the signalfd, so a blocked signal stays pending.
bool DaemonSignalIsPending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

void ReleaseDaemonSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

DaemonSignals::DaemonSignals(std::unique_ptr<EventLoop> loop, Fd signals)
    : loop_(std::move(loop)), signals_(std::move(signals)) {}

absl::StatusOr<std::unique_ptr<DaemonSignals>> DaemonSignals::Create(Fd signals) {
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  auto made = absl::WrapUnique(new DaemonSignals(std::move(loop), std::move(signals)));
  DaemonSignals* const self = made.get();
  RETURN_IF_ERROR(
      self->loop_->Watch(self->signals_.get(), EPOLLIN, [self](uint32_t) { self->Handle(); }));
  return made;
}

void DaemonSignals::Start(Actions actions) {
  {
    absl::MutexLock lock(&mutex_);
    actions_ = std::move(actions);
  }
  thread_ = std::thread([this] { loop_->Run(); });
}

DaemonSignals::~DaemonSignals() {
  if (!thread_.joinable()) return;
  loop_->Post([this] { loop_->Stop(); });
  thread_.join();
}

void DaemonSignals::JobIsOver() {
  absl::MutexLock lock(&mutex_);
  actions_ = {};
}

void DaemonSignals::Handle() {
  signalfd_siginfo info = {};
  if (read(signals_.get(), &info, sizeof(info)) != sizeof(info)) return;
  const int signal = static_cast<int>(info.ssi_signo);
  // No lock: only this thread uses grace_.
  const bool is_first = grace_ > absl::ZeroDuration();
  absl::MutexLock lock(&mutex_);
  // The first signal starts a graceful stop and sets no time limit, since workers may use their
  // grace. Leaving the job, any further signal, and a signal after the job's end all bound the time
  // to the exit.
  const bool leaves = is_first && signal != SIGINT && actions_.leave != nullptr;
  if (!is_first || leaves || actions_.stop == nullptr) EndInTime(128 + signal);
  // The actions are called under the lock, so that JobIsOver waits for a call in progress, which
  // uses the server. They only queue something, so they don't block.
  if (leaves) return actions_.leave();
  if (actions_.stop == nullptr) return;
  actions_.stop(absl::StrCat("horovod-rendezvousd was ended by ", "SIG", sigabbrev_np(signal)),
                128 + signal, std::exchange(grace_, absl::ZeroDuration()));
}

// Terminates the process after kPatience, whatever hangs. _exit is safe here: as after SIGKILL, the
// next daemon and the agents need nothing from this process.
void DaemonSignals::EndInTime(int exit_code) {
  loop_->After(kPatience, [exit_code] { _exit(exit_code); });
}

}  // namespace hvd::rendezvous::daemon
