// Going to a peer's door.
#ifndef COLLECTIVES_GLOO_LINK_LINK_DIALER_H_
#define COLLECTIVES_GLOO_LINK_LINK_DIALER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/net/wire.h"
#include "collectives/types.h"

namespace hvd::collectives::gloo::link {

// A connection to rank `peer`'s LinkAcceptor at `address` (kLinkAddressBytes), whose ends have
// proved themselves. Blocks. A connection that is lost before that is made anew: who waits at a
// door with many strangers may be sent away.
//   DeadlineExceeded; the cancellation's status.
//   InvalidArgument: not an address.   Unavailable: nobody is there any more, or no way leads
//   there.   ResourceExhausted: too many open files.   PermissionDenied: who is there does not know
//   the secret, or has no certificate of the job.
absl::StatusOr<net::Wire> DialLink(const GroupInfo& group, int peer, absl::string_view address,
                                   absl::Time deadline, const Cancellation* cancellation);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_DIALER_H_
