#include "rendezvous/server/acceptor.h"

#include <errno.h>
#include <sys/socket.h>

namespace hvd {

Acceptor::~Acceptor() {
  loop_.Forget(listener_.get());
  if (pause_.has_value()) loop_.Cancel(*pause_);
}

absl::Status Acceptor::Begin() {
  return loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

void Acceptor::Accept() {
  Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection.valid()) return take_(std::move(connection));
  if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
  loop_.Change(listener_.get(), 0);
  pause_ = loop_.After(kPause, [this] { loop_.Change(listener_.get(), EPOLLIN); });
}

}  // namespace hvd
