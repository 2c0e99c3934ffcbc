#include "collectives/gloo/link/link_dialer.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/gloo/link/await_descriptor.h"
#include "collectives/gloo/link/link_address.h"
#include "collectives/gloo/link/link_opening.h"

namespace hvd::collectives::gloo::link {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(10);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

// All attempts to reach one peer.
class Attempts {
 public:
  Attempts(const GroupInfo& group, int peer, absl::Time deadline, const Cancellation* cancellation)
      : group_(group), peer_(peer), deadline_(deadline), cancellation_(cancellation) {}

  absl::StatusOr<net::Wire> Run(const LinkSocketAddress& address) {
    for (absl::Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      absl::StatusOr<net::Wire> wire = TryOnce(address);
      // Only a peer that hung up is tried again: it may be short of descriptors, or has taken this
      // rank for a silent stranger. A refused connection is final, since a rank publishes its
      // address only when it listens.
      if (wire.ok() || !hung_up_) return wire;
      const absl::Time then = Clock::Real().Now() + pause;
      if (then >= deadline_) return absl::DeadlineExceededError(wire.status().message());
      // A sleep until `then` that the cancellation can end: no descriptor becomes ready.
      const absl::Status waited = AwaitDescriptor(-1, 0, then, cancellation_);
      if (!absl::IsDeadlineExceeded(waited)) return waited;
    }
  }

 private:
  absl::StatusOr<net::Wire> TryOnce(const LinkSocketAddress& address) {
    hung_up_ = false;
    ASSIGN_OR_RETURN(Fd fd, Connect(address));
    LinkOpening opening(
        net::Wire(std::move(fd), group_.tls, net::TlsEnd::kConnects), [this](std::string binding) {
          return MakeDialerHandshake(kLinkProtocol, group_, peer_, std::move(binding));
        });
    for (;;) {
      switch (opening.Advance()) {
        case LinkOpening::Progress::kProved:
          return opening.TakeWire();
        case LinkOpening::Progress::kFailed:
          hung_up_ = absl::IsUnavailable(opening.status());
          return opening.status();
        case LinkOpening::Progress::kWantsToRead:
          RETURN_IF_ERROR(AwaitDescriptor(opening.fd(), POLLIN, deadline_, cancellation_));
          break;
        case LinkOpening::Progress::kWantsToWrite:
          RETURN_IF_ERROR(AwaitDescriptor(opening.fd(), POLLOUT, deadline_, cancellation_));
          break;
      }
    }
  }

  absl::StatusOr<Fd> Connect(const LinkSocketAddress& address) {
    Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return Failed(errno);
    const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
    if (connect(fd.get(), to, address.length) == 0) return fd;
    if (errno != EINPROGRESS) return Failed(errno);
    // A connection under way is writable when it has succeeded or failed; SO_ERROR says which.
    RETURN_IF_ERROR(AwaitDescriptor(fd.get(), POLLOUT, deadline_, cancellation_));
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    if (error != 0) return Failed(error);
    return fd;
  }

  absl::Status Failed(int error) {
    if (error == EMFILE || error == ENFILE) {
      return absl::ResourceExhaustedError(absl::StrCat("no socket: ", strerror(error)));
    }
    // The peer's kernel may reset a connection when the acceptor's backlog is full: worth a retry.
    hung_up_ = error == ECONNRESET || error == ETIMEDOUT;
    return absl::UnavailableError(strerror(error));
  }

  const GroupInfo& group_;
  const int peer_;
  const absl::Time deadline_;
  const Cancellation* const cancellation_;
  bool hung_up_ = false;  // whether the peer closed the connection of the last attempt
};

}  // namespace

absl::StatusOr<net::Wire> DialLink(const GroupInfo& group, int peer, absl::string_view address,
                                   absl::Time deadline, const Cancellation* cancellation) {
  const auto dial = [&]() -> absl::StatusOr<net::Wire> {
    ASSIGN_OR_RETURN(const LinkSocketAddress parsed, ParseLinkAddress(address));
    return Attempts(group, peer, deadline, cancellation).Run(parsed);
  };
  absl::StatusOr<net::Wire> wire = dial();
  // The reason of a cancellation is passed on as it is: this peer has nothing to do with it.
  if (wire.ok() || (cancellation != nullptr && wire.status() == cancellation->status())) {
    return wire;
  }
  return absl::Status(wire.status().code(),
                      absl::StrCat("can't connect to rank ", peer, ": ", wire.status().message()));
}

}  // namespace hvd::collectives::gloo::link
