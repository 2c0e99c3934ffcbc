// The time limits of one side of a control connection for the process at the other end.
#ifndef RENDEZVOUS_TRANSPORT_PATIENCE_H_
#define RENDEZVOUS_TRANSPORT_PATIENCE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace hvd::rendezvous::transport {

// How long either process may be stopped or starved of CPU before the connection ends.
inline constexpr absl::Duration kProcessPatience = absl::Seconds(30);

struct Patience {
  // Connected: the limit for the answer to a keepalive ping.
  absl::Duration silence = kProcessPatience;
  // Connecting: the limit of one attempt, TLS included.
  absl::Duration attempt = kProcessPatience;
};

// The patience of a client that has to reach the daemon again within `reattach`. Whoever holds the
// daemon's port for a moment can accept a connection and never answer it, so the client needs the
// time for several attempts. `reattach` of zero: the client does not wait for another daemon.
inline Patience PatienceFor(absl::Duration silence, absl::Duration reattach) {
  constexpr int kAttempts = 5;
  constexpr absl::Duration kLeastAttempt = absl::Seconds(1);
  if (reattach <= absl::ZeroDuration()) return {silence, silence};
  const absl::Duration shorter = std::min(silence, reattach);
  return {silence, std::max(shorter / kAttempts, kLeastAttempt)};
}

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_PATIENCE_H_
