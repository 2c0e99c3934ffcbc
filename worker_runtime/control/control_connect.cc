#include "worker_runtime/control/control_connect.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "worker_runtime/control/handshake_io.h"

namespace hvd::worker_runtime::control {
namespace {

constexpr absl::Duration kShortestPause = absl::Milliseconds(10);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

absl::Status HungUp(const net::Wire& wire) {
  if (wire.unsafe()) return absl::PermissionDeniedError(wire.failure());
  return absl::UnavailableError("rank 0 hung up during the handshake");
}

absl::Status OpenWire(net::Wire& wire, absl::Time deadline, const Cancellation* cancellation) {
  while (true) {
    const net::Opening opening = wire.Open();
    if (opening == net::Opening::kDone) return absl::OkStatus();
    if (opening == net::Opening::kFailed) return HungUp(wire);
    // In a TLS handshake either side may have to wait for the other.
    const short wanted = opening == net::Opening::kWantsToRead ? POLLIN : POLLOUT;
    RETURN_IF_ERROR(net::AwaitReady(wire.fd(), wanted, deadline, cancellation));
  }
}

absl::StatusOr<std::string> ReadWhole(net::Wire& wire, size_t wanted, absl::Time deadline,
                                      const Cancellation* cancellation) {
  std::string buffer;
  while (true) {
    switch (ReadTowards(wire, wanted, buffer)) {
      case ReadOutcome::kWhole:
        return buffer;
      case ReadOutcome::kEnd:
        return HungUp(wire);
      case ReadOutcome::kPartial:
        break;
    }
    RETURN_IF_ERROR(net::AwaitReady(wire.fd(), POLLIN, deadline, cancellation));
  }
}

absl::Status RunMemberHandshake(const collectives::GroupInfo& group, net::Wire& wire,
                                absl::Time deadline, const Cancellation* cancellation) {
  RETURN_IF_ERROR(net::TuneForMessages(wire.fd()));
  RETURN_IF_ERROR(OpenWire(wire, deadline, cancellation));
  // The handshake is a pure state machine: this loop moves its bytes. The TLS binding, if any, is
  // part of the proof, so an attacker can't relay it over two TLS connections.
  const std::unique_ptr<collectives::PeerHandshake> handshake =
      collectives::MakeDialerHandshake(kControlProtocol, group, /*peer=*/0, wire.Binding());
  std::string answer = handshake->Start();
  while (true) {
    if (!SendAll(wire, answer)) return HungUp(wire);
    if (handshake->wanted() == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadWhole(wire, handshake->wanted(), deadline, cancellation));
    ASSIGN_OR_RETURN(answer, handshake->Step(bytes));
  }
}

absl::StatusOr<net::Wire> Connect(const collectives::GroupInfo& group, const std::string& address,
                                  int port, absl::Time deadline, const Cancellation* cancellation) {
  absl::Duration pause = kShortestPause;
  while (true) {
    ASSIGN_OR_RETURN(Fd fd, net::ConnectTo(address, port, deadline, cancellation));
    net::Wire wire(std::move(fd), group.tls, net::TlsEnd::kConnects);
    absl::Status told = RunMemberHandshake(group, wire, deadline, cancellation);
    if (told.ok()) return wire;
    // Unavailable: rank 0 has hung up. It does so with the least proven connections when it has too
    // many, so a member tries again.
    if (!absl::IsUnavailable(told)) return told;
    const absl::Time again = Clock::Real().Now() + pause;
    if (again >= deadline) return told;
    absl::Status paused = net::AwaitReady(/*fd=*/-1, 0, again, cancellation);
    if (!absl::IsDeadlineExceeded(paused)) return paused;
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace

absl::StatusOr<net::Wire> ConnectToRoot(const collectives::GroupInfo& group,
                                        const std::string& address, int port,
                                        const WaitBounds& bounds) {
  absl::StatusOr<net::Wire> wire =
      Connect(group, address, port, Clock::Real().Now() + bounds.timeout, bounds.cancellation);
  if (wire.ok()) return wire;
  return absl::Status(wire.status().code(),
                      absl::StrCat("rank ", group.rank, ": control connection to rank 0 at ",
                                   address, " port ", port, ": ", wire.status().message()));
}

}  // namespace hvd::worker_runtime::control
