#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace hvd {

void Fd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "can't make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

absl::Status SetNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "can't make a descriptor non-blocking");
  }
  return absl::OkStatus();
}

bool IsPipe(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

IoResult ReadSome(int fd, char* buffer, size_t size) {
  const ssize_t got = TEMP_FAILURE_RETRY(read(fd, buffer, size));
  if (got > 0) return {static_cast<size_t>(got), false, false};
  const bool would_block = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  return {0, would_block, !would_block};
}

IoResult WriteSome(int fd, absl::string_view data) {
  const ssize_t put = TEMP_FAILURE_RETRY(write(fd, data.data(), data.size()));
  if (put >= 0) return {static_cast<size_t>(put), false, false};
  const bool would_block = errno == EAGAIN || errno == EWOULDBLOCK;
  return {0, would_block, !would_block};
}

absl::Status WriteAll(int fd, absl::string_view data) {
  while (!data.empty()) {
    const IoResult result = WriteSome(fd, data);
    if (result.end) return absl::UnavailableError("the other side has closed the stream");
    if (result.would_block) return absl::FailedPreconditionError("the descriptor does not block");
    data.remove_prefix(result.bytes);
  }
  return absl::OkStatus();
}

}  // namespace hvd
