#include "base/net/peer/peer_listener.h"

#include <sys/epoll.h>

#include <optional>

#include "base/net/peer_source.h"

namespace hvd::net::peer {

PeerListener::PeerListener(EventLoop& loop, Fd listener, std::shared_ptr<const TlsContext> tls,
                           PeerOpening::MakeHandshake make_handshake, StrangerBounds bounds,
                           Take take)
    : loop_(loop),
      tls_(std::move(tls)),
      make_handshake_(std::move(make_handshake)),
      patience_(bounds.patience),
      take_(std::move(take)),
      strangers_(bounds.most),
      acceptor_(
          loop, std::move(listener), [this](Fd fd) { Admit(std::move(fd)); },
          [this] { return MakeRoom(); }) {}

PeerListener::~PeerListener() {
  while (!openings_.empty()) TakeOut(openings_.begin()->first);
}

absl::Status PeerListener::Begin() { return acceptor_.Begin(); }

void PeerListener::Admit(Fd fd) {
  const Id id = strangers_.Add(PeerSource(fd.get()));
  PeerOpening opening(Wire(std::move(fd), tls_, TlsEnd::kAccepts), make_handshake_);
  const int watched = opening.fd();
  openings_.emplace(
      id, Stranger{std::move(opening), loop_.After(patience_, [this, id] { Refuse(id); })});
  if (!loop_.Watch(watched, EPOLLIN, [this, id](uint32_t) { Advance(id); }).ok()) return Refuse(id);
  // Its first message may have arrived already. Reading it now keeps the stranger from being closed
  // as a silent one.
  Advance(id);
}

void PeerListener::Advance(Id id) {
  using Progress = PeerOpening::Progress;
  Stranger& stranger = openings_.at(id);
  const Progress progress = stranger.opening.Advance();
  if (progress == Progress::kFailed) return Refuse(id);
  if (progress != Progress::kProved) {
    return AwaitTurn(id, &stranger, progress == Progress::kWantsToWrite);
  }
  Stranger proved = TakeOut(id);
  const PeerId peer = proved.opening.peer();
  take_(proved.opening.TakeWire(), peer);
}

void PeerListener::AwaitTurn(Id id, Stranger* stranger, bool writes) {
  if (writes != stranger->writes) {
    stranger->writes = writes;
    loop_.Change(stranger->opening.fd(), writes ? EPOLLOUT : EPOLLIN);
  }
  strangers_.Reach(id, stranger->opening.stage());
  while (const std::optional<Id> surplus = strangers_.Surplus()) Refuse(*surplus);
}

bool PeerListener::MakeRoom() {
  const std::optional<Id> gone = strangers_.LeastLikelyMember();
  if (gone.has_value()) Refuse(*gone);
  return gone.has_value();
}

PeerListener::Stranger PeerListener::TakeOut(Id id) {
  const auto found = openings_.find(id);
  loop_.Forget(found->second.opening.fd());
  loop_.Cancel(found->second.expiry);
  Stranger stranger = std::move(found->second);
  openings_.erase(found);
  strangers_.Remove(id);
  return stranger;
}

void PeerListener::Refuse(Id id) {
  ++refused_;  // before the connection is closed
  TakeOut(id);
}

}  // namespace hvd::net::peer
