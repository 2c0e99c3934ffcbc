// Takes one connection, and says when to let others wait.
#ifndef BASE_NET_ACCEPT_H_
#define BASE_NET_ACCEPT_H_

#include "absl/time/time.h"
#include "base/fd.h"

namespace hvd::net {

// For how long a listening socket is best left alone when there was no file or memory for a
// connection: it stays readable, and whoever looks again at once turns in a circle.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

struct Accepted {
  Fd connection;              // none: there is none now, or no file for it
  bool out_of_files = false;  // leave the listener alone for kAcceptPause
};

// The connection does not block and is closed by exec. Thread-safe.
Accepted Accept(int listener);

}  // namespace hvd::net

#endif  // BASE_NET_ACCEPT_H_
