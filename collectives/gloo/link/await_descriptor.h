// A blocking wait for one descriptor, up to a deadline or a cancellation.
#ifndef COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_
#define COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/cancellation.h"

namespace hvd::collectives::gloo::link {

// Waits until `fd` is ready for `events` (poll's); -1 never is. `cancellation` may be nullptr.
// Errors:
//   - DeadlineExceeded: it was not ready in time.
//   - The cancellation's status: it was cancelled.
absl::Status AwaitDescriptor(int fd, short events, absl::Time deadline,
                             const Cancellation* cancellation);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_
