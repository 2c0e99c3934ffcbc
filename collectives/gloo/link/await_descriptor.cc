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
  pollfd fds[] = {{fd, events, 0}, {cancellation == nullptr ? -1 : cancellation->fd(), POLLIN, 0}};
  for (;;) {
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("not in time");
    const int64_t milliseconds =
        std::min<int64_t>(GlooTimeout(left).count(), std::numeric_limits<int>::max());
    const int ready = poll(fds, 2, static_cast<int>(milliseconds));
    if (ready < 0 && errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("poll: ", strerror(errno)));
    }
    if (ready > 0 && fds[1].revents != 0) return cancellation->status();
    if (ready > 0) return absl::OkStatus();
  }
}

}  // namespace hvd::collectives::gloo::link
