#include "base/os/other_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace hvd::os {

absl::StatusOr<OtherProcess> OtherProcess::Open(pid_t pid) {
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.valid()) return OtherProcess(pid, std::move(pidfd));
  if (errno == ESRCH || errno == EINVAL) return absl::NotFoundError("no such process");
  return absl::ErrnoToStatus(errno, "can't watch a process");
}

bool OtherProcess::HasEnded() const {
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  return TEMP_FAILURE_RETRY(poll(&ended, 1, 0)) == 1;
}

bool OtherProcess::Signal(int signal) const {
  return syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0) == 0;
}

}  // namespace hvd::os
