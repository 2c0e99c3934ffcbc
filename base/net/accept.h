// A non-blocking accept() that reports descriptor exhaustion.
#ifndef BASE_NET_ACCEPT_H_
#define BASE_NET_ACCEPT_H_

#include "absl/time/time.h"
#include "base/fd.h"

namespace hvd::net {

// How long not to poll a listening socket after accept() has failed for lack of descriptors or
// memory. The socket stays readable, so polling it at once would be a busy loop.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

struct Accepted {
  Fd connection;              // invalid: no connection is pending, or no descriptor is left
  bool out_of_files = false;  // do not poll the listener for kAcceptPause
};

// Accepts one pending connection, which is non-blocking and close-on-exec. Thread-safe.
Accepted Accept(int listener);

}  // namespace hvd::net

#endif  // BASE_NET_ACCEPT_H_
