// Waiting for one descriptor, up to a deadline or a cancellation.
#ifndef COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_
#define COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/cancellation.h"

namespace hvd::collectives::gloo::link {

// Until `fd` is ready for `events` (poll's); -1 never is. `cancellation` may be nullptr.
//   DeadlineExceeded: it was not.   The cancellation's status.
absl::Status AwaitDescriptor(int fd, short events, absl::Time deadline,
                             const Cancellation* cancellation);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_AWAIT_DESCRIPTOR_H_
