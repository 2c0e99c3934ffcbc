#include "base/net/acceptor.h"

#include "base/net/accept.h"

namespace hvd::net {

Acceptor::~Acceptor() {
  loop_.Forget(listener_.get());
  if (pause_.has_value()) loop_.Cancel(*pause_);
}

absl::Status Acceptor::Begin() {
  return loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { TakeNext(); });
}

void Acceptor::TakeNext() {
  Accepted accepted = Accept(listener_.get());
  if (accepted.connection.valid()) return take_(std::move(accepted.connection));
  // After make_room_ has closed a connection the loop calls again at once, since the listener is
  // still readable (level-triggered).
  if (!accepted.out_of_files || make_room_()) return;
  // Without the pause the level-triggered loop would spin until a descriptor is free.
  loop_.Change(listener_.get(), 0);
  pause_ = loop_.After(kAcceptPause, [this] { loop_.Change(listener_.get(), EPOLLIN); });
}

}  // namespace hvd::net
