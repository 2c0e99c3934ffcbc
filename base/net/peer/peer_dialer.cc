#include "base/net/peer/peer_dialer.h"

#include <poll.h>

#include <random>
#include <utility>

#include "base/clock.h"
#include "base/net/peer/back_off.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"

namespace hvd::net::peer {
namespace {

constexpr absl::Duration kShortestPause = absl::Milliseconds(10);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

// Errors: those of Dial, but
//   - Aborted: the peer hung up, so another try may succeed.
absl::StatusOr<Wire> TryOnce(const Dialing& dialing, absl::Time deadline,
                             const Cancellation* cancellation) {
  ASSIGN_OR_RETURN(Fd fd, Connect(dialing.address, deadline, cancellation));
  PeerOpening opening(Wire(std::move(fd), dialing.tls, TlsEnd::kConnects), dialing.make_handshake);
  while (true) {
    switch (opening.Advance()) {
      case PeerOpening::Progress::kProved:
        return opening.TakeWire();
      case PeerOpening::Progress::kFailed:
        if (!absl::IsUnavailable(opening.status())) return opening.status();
        return absl::AbortedError(opening.status().message());
      case PeerOpening::Progress::kWantsToRead:
        RETURN_IF_ERROR(AwaitReady(opening.fd(), POLLIN, deadline, cancellation));
        break;
      case PeerOpening::Progress::kWantsToWrite:
        RETURN_IF_ERROR(AwaitReady(opening.fd(), POLLOUT, deadline, cancellation));
        break;
    }
  }
}

}  // namespace

absl::StatusOr<Wire> Dial(const Dialing& dialing, absl::Time deadline,
                          const Cancellation* cancellation) {
  BackOff back_off(kShortestPause, kLongestPause);
  std::minstd_rand random{std::random_device{}()};
  while (true) {
    absl::StatusOr<Wire> wire = TryOnce(dialing, deadline, cancellation);
    if (!absl::IsAborted(wire.status())) return wire;
    if (cancellation != nullptr) RETURN_IF_ERROR(cancellation->status());  // of any code
    const absl::Time then = Clock::Real().Now() + back_off.Next(random);
    if (then >= deadline) return absl::DeadlineExceededError(wire.status().message());
    // A sleep until `then` that the cancellation can end: no descriptor becomes ready.
    const absl::Status slept = AwaitReady(-1, 0, then, cancellation);
    if (!absl::IsDeadlineExceeded(slept)) return slept;
  }
}

}  // namespace hvd::net::peer
