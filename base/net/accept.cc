#include "base/net/accept.h"

#include <sys/socket.h>

#include <cerrno>

namespace hvd::net {

Accepted Accept(int listener) {
  Fd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection.valid()) return {std::move(connection), false};
  return {Fd(), errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM};
}

}  // namespace hvd::net
