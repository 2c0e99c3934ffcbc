#include "base/os/starter.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "base/fd.h"

namespace hvd::os {
namespace {

// Data from there is dropped; only the end of the stream matters.
bool HasEnded(int input) {
  char buffer[4096];
  return ReadSome(input, buffer, sizeof(buffer)).end;
}

}  // namespace

absl::StatusOr<Starter> Starter::Find(const Signs& signs) {
  Starter starter;
  if (signs.parent) {
    const pid_t parent = getppid();
    absl::StatusOr<OtherProcess> process = OtherProcess::Open(parent);
    // If the parent ended before the pidfd was opened, another process may have its number. The
    // second getppid detects that.
    if (!process.ok() || getppid() != parent) {
      return absl::FailedPreconditionError(
          "the process that started this has ended, or can't be seen from here");
    }
    starter.parent_ = *std::move(process);
  }
  starter.has_input_ = signs.input;
  if (starter.has_input_ && !IsPipe(STDIN_FILENO)) {
    return absl::FailedPreconditionError("stdin is not a pipe");
  }
  return starter;
}

void Starter::Watch(EventLoop& loop, const std::function<void(const std::string&)>& on_end) const {
  if (parent_.has_value()) {
    const int fd = parent_->fd();
    (void)loop.Watch(fd, EPOLLIN, [&loop, fd, on_end](uint32_t) {
      loop.Forget(fd);
      on_end("the process that started it has ended");
    });
  }
  if (has_input_) {
    (void)SetNonBlocking(STDIN_FILENO);
    (void)loop.Watch(STDIN_FILENO, EPOLLIN, [&loop, on_end](uint32_t) {
      if (!HasEnded(STDIN_FILENO)) return;
      loop.Forget(STDIN_FILENO);
      on_end("its stdin has ended");
    });
  }
}

}  // namespace hvd::os
