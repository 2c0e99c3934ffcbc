#include "base/net/peer/peer_opening.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

namespace hvd::net::peer {
namespace {

// Best effort. Keepalive: firewalls and NATs drop the state of connections that are idle for some
// minutes, as those between workers may be. TCP_NODELAY: the dialer of TLS ends the session's
// handshake and sends its first message right after that. Nagle's algorithm would keep the message
// back until the other end acknowledges what came before, which takes 40 ms.
void SetOptions(int fd) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
}

}  // namespace

PeerOpening::PeerOpening(Wire wire, MakeHandshake make_handshake)
    : wire_(std::move(wire)), make_handshake_(std::move(make_handshake)) {
  SetOptions(wire_.fd());
}

// Returns kProved when the wire is open.
PeerOpening::Progress PeerOpening::OpenWire() {
  switch (wire_.Open()) {
    case Opening::kWantsToRead:
      return Progress::kWantsToRead;
    case Opening::kWantsToWrite:
      return Progress::kWantsToWrite;
    case Opening::kFailed:
      return HungUp();
    case Opening::kDone:
      break;
  }
  // Made only now: its proofs contain the binding, which an open wire has.
  handshake_ = make_handshake_(wire_.Binding());
  unsent_ = handshake_->Start();
  return Progress::kProved;
}

// The handshake alternates strictly: the pending answer is sent completely before the next message
// is read. At most the missing bytes of that message are read, so that everything after the
// handshake stays in the wire, for its next user.
PeerOpening::Progress PeerOpening::Advance() {
  if (status_.ok() && handshake_ == nullptr) {
    const Progress opened = OpenWire();
    if (opened != Progress::kProved) return opened;
  }
  while (status_.ok()) {
    if (!unsent_.empty()) {
      const IoResult sent = wire_.Write(unsent_);
      if (sent.end) return HungUp();
      unsent_.erase(0, sent.bytes);
      if (!unsent_.empty()) return Progress::kWantsToWrite;
    }
    const size_t wanted = handshake_->wanted();
    if (wanted == 0) return Progress::kProved;
    const size_t had = received_.size();
    received_.resize(wanted);
    const IoResult got = wire_.Read(&received_[had], wanted - had);
    received_.resize(had + got.bytes);
    if (got.end) return HungUp();
    if (received_.size() < wanted) return Progress::kWantsToRead;
    absl::StatusOr<std::string> answer = handshake_->Step(std::exchange(received_, ""));
    if (!answer.ok()) return Fail(answer.status());
    unsent_ = *std::move(answer);
  }
  return Progress::kFailed;
}

Strangers::Stage PeerOpening::stage() const {
  // An accepting end's TLS handshake is complete only once it has checked the other's certificate.
  if (handshake_ != nullptr && wire_.encrypted()) return Strangers::Stage::kCertified;
  return wire_.heard() ? Strangers::Stage::kHeard : Strangers::Stage::kSilent;
}

PeerOpening::Progress PeerOpening::HungUp() {
  // A peer that hung up may be dialled again. One that has no valid certificate, or whose bytes
  // were changed on the way, may not.
  return Fail(wire_.unsafe() ? absl::PermissionDeniedError(wire_.failure())
                             : absl::UnavailableError("the other end hung up"));
}

PeerOpening::Progress PeerOpening::Fail(const absl::Status& why) {
  status_ = why;
  return Progress::kFailed;
}

}  // namespace hvd::net::peer
