#include "collectives/gloo/link/await_descriptor.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "collectives/gloo/link/gloo_glue.h"

namespace hvd::collectives::gloo::link {

absl::Status AwaitDescriptor(int fd, short events, absl::Time deadline,
                             const Cancellation* cancellation) {
  // poll ignores an entry whose descriptor is negative, so neither `fd` nor the cancellation is
  // required.
  pollfd fds[] = {{fd, events, 0}, {cancellation == nullptr ? -1 : cancellation->fd(), POLLIN, 0}};
  for (;;) {
    // Computed anew after each wake-up: a signal must not restart the wait.
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("not in time");
    const int64_t milliseconds =
        std::min<int64_t>(GlooTimeout(left).count(), std::numeric_limits<int>::max());
    const int ready = poll(fds, 2, static_cast<int>(milliseconds));
    if (ready < 0 && errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("poll: ", strerror(errno)));
    }
    // The cancellation first: the descriptor may be ready because of what it has ended. An error of
    // the descriptor (POLLERR, POLLHUP) counts as ready; the caller's next call returns it.
    if (ready > 0 && fds[1].revents != 0) return cancellation->status();
    if (ready > 0) return absl::OkStatus();
  }
}

}  // namespace hvd::collectives::gloo::link
