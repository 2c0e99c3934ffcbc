// A blocking wait for one file descriptor, bounded by a deadline and a cancellation.
#ifndef COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_
#define COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/cancellation.h"

namespace hvd::collectives::gloo::link {

// Waits until `fd` is ready for `events` (those of poll()). A `fd` of -1 is never ready.
// `cancellation` may be nullptr.
// Errors:
//   - DeadlineExceeded: `fd` was not ready in time.
//   - The cancellation's status: it was cancelled.
absl::Status AwaitDescriptor(int fd, short events, absl::Time deadline,
                             const Cancellation* cancellation);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_
