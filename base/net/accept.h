// A single accept() on a listening socket, which reports a lack of files.
#ifndef BASE_NET_ACCEPT_H_
#define BASE_NET_ACCEPT_H_

#include "absl/time/time.h"
#include "base/fd.h"

namespace hvd::net {

// The time to leave a listening socket alone when there was no file or memory for a connection. The
// socket stays readable, so checking it again at once would be a busy loop.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

struct Accepted {
  Fd connection;              // invalid: no connection is waiting, or there is no file for it
  bool out_of_files = false;  // leave the listener alone for kAcceptPause
};

// The connection is non-blocking and closed by exec. Thread-safe.
Accepted Accept(int listener);

}  // namespace hvd::net

#endif  // BASE_NET_ACCEPT_H_
