#include "rendezvous/daemon_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

absl::StatusOr<Fd> TakeDaemonSignals() {
  const sigset_t signals = StopSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  Fd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return absl::ResourceExhaustedError("no descriptor for signals is left");
  signal(SIGPIPE, SIG_IGN);
  return fd;
}

void ReleaseDaemonSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void DaemonSignals::Handle() {
  signalfd_siginfo info = {};
  if (read(fd_, &info, sizeof(info)) != sizeof(info)) return;
  const int signal = static_cast<int>(info.ssi_signo);
  const bool is_first = grace_ > absl::ZeroDuration();
  if (is_first && signal == SIGTERM && leave_ != nullptr) return leave_();
  server_.RequestStop(
      absl::StrCat("horovod-rendezvousd was ended by ", signal == SIGINT ? "SIGINT" : "SIGTERM"),
      128 + signal, std::exchange(grace_, absl::ZeroDuration()));
}

}  // namespace hvd
