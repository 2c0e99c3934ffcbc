#include "base/cancellation_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "base/signal_free_thread.h"

namespace hvd {

CancellationWatch::CancellationWatch(const Cancellation* cancellation,
                                     std::function<void(const absl::Status& why)> then)
    : end_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Without descriptors there is no thread: the blocking calls then run until their own timeouts,
  // as with Cancellation::fd() == -1.
  if (cancellation == nullptr || cancellation->fd() < 0 || !end_.valid()) return;
  thread_ = StartSignalFreeThread([this, cancellation, then = std::move(then)] {
    pollfd fds[] = {{cancellation->fd(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    while (poll(fds, 2, -1) < 0) continue;  // a signal
    if (fds[0].revents != 0) then(cancellation->status());
  });
}

CancellationWatch::~CancellationWatch() {
  if (!thread_.joinable()) return;
  (void)eventfd_write(end_.get(), 1);
  thread_.join();
}

}  // namespace hvd
