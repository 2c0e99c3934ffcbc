#include "launcher/job/stop_signals.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/os/signals.h"
#include "base/status_macros.h"

namespace hvd::launcher::job {
namespace {

// Signals that were ignored at the start of the process (nohup) are not included.
sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) os::AddUnlessIgnored(set, signal);
  return set;
}

sigset_t WatchedSignals() {
  sigset_t set = StopSignals();
  os::AddNotices(set);
  return set;
}

absl::Status WatchForEnd(EventLoop& loop, int fd,
                         const std::function<void(int signal)>& on_signal) {
  const auto watched = loop.Watch(fd, EPOLLIN, [&loop, fd, on_signal](uint32_t) {
    char buffer[4096];
    if (!ReadSome(fd, buffer, sizeof buffer).end) return;
    // A copy, because Forget destroys this handler and its captures.
    const auto tell = on_signal;
    loop.Forget(fd);
    tell(kStreamHasEnded);
  });
  if (watched.ok()) return watched;
  return absl::InvalidArgumentError("stdin never ends: for --end-with-stdin it must be a pipe");
}

}  // namespace

void PrepareProcess() {
  // If stdin, stdout or stderr is closed, the next descriptor to be opened, e.g. a socket, would
  // get its number, and output would go there.
  int fd;
  do {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
  std::signal(SIGPIPE, SIG_IGN);
  // A file that has reached its limit (ulimit -f) fails as one on a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  os::BlockNotices();
}

absl::StatusOr<std::unique_ptr<StopSignalWatcher>> StopSignalWatcher::Start(
    std::function<void(int signal)> on_signal, int hangup_fd) {
  const sigset_t set = WatchedSignals();
  Fd signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) {
    return absl::InternalError(absl::StrCat("signalfd: ", std::strerror(errno)));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  auto watcher = absl::WrapUnique(
      new StopSignalWatcher(std::move(loop), std::move(signals), std::move(on_signal)));
  StopSignalWatcher* const self = watcher.get();
  const int fd = self->signals_.get();
  RETURN_IF_ERROR(self->loop_->Watch(fd, EPOLLIN, [fd, self](uint32_t) {
    signalfd_siginfo info;
    if (read(fd, &info, sizeof info) == sizeof info) self->Notify(static_cast<int>(info.ssi_signo));
  }));
  if (hangup_fd >= 0) {
    RETURN_IF_ERROR(
        WatchForEnd(*self->loop_, hangup_fd, [self](int signal) { self->Notify(signal); }));
  }
  self->thread_ = std::thread([self] { self->loop_->Run(); });
  return watcher;
}

// The second signal starts a timer that ends the process whatever blocks its other threads. Agents
// detect the end of the launcher, as after kill -9, and end their workers.
void StopSignalWatcher::Notify(int signal) {
  // A terminal that closes may send it twice, by its shell and by the kernel, also after a Ctrl-C.
  // It is never a request for more haste.
  if (signal == SIGHUP && told_ > 0) return;
  if (!os::IsNotice(signal) && ++told_ == 2) {
    const int code = 128 + (signal == kStreamHasEnded ? SIGHUP : signal);
    loop_->After(kPatience, [code] { _exit(code); });
  }
  on_signal_(signal);
}

StopSignalWatcher::~StopSignalWatcher() {
  if (!thread_.joinable()) return;
  loop_->Post([this] {
    loop_->Forget(signals_.get());
    loop_->Stop();
  });
  thread_.join();
}

}  // namespace hvd::launcher::job
