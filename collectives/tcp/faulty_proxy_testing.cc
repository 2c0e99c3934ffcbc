#include "collectives/tcp/faulty_proxy_testing.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/net/tcp_socket.h"
#include "collectives/tcp/link_address.h"

namespace hvd::collectives::tcp {
namespace {

constexpr size_t kMostHeld = 256 << 10;
constexpr size_t kDribble = 700;

void ResetOnClose(const Fd& fd) {
  const linger reset = {1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

}  // namespace

FaultyProxy::FaultyProxy(std::string target, Fault fault)
    : target_(std::move(target)),
      fault_(fault),
      listener_(*net::ListenOnAnyPort("127.0.0.1")),
      address_(LinkAddressOf(*net::LocalAddressOf(listener_.get()))),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { Run(); });
}

FaultyProxy::~FaultyProxy() {
  (void)eventfd_write(stop_.get(), 1);
  thread_.join();
}

void FaultyProxy::Run() {
  while (true) {
    std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Connection& each : connections_) {
      const auto events = [](const Way& in, const Way& out) {
        const bool reads = !in.ended && in.held.size() < kMostHeld;
        return static_cast<short>((reads ? POLLIN : 0) |  // NOLINT: poll's own type
                                  (out.held.empty() ? 0 : POLLOUT));
      };
      if (stalls_) continue;
      if (each.dialer.valid()) polled.push_back({each.dialer.get(), events(each.up, each.down), 0});
      if (!each.is_cut) polled.push_back({each.acceptor.get(), events(each.down, each.up), 0});
    }
    poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    if (polled[1].revents != 0) Accept();
    for (auto each = connections_.begin(); each != connections_.end() && !stalls_;) {
      each = Forward(*each) ? std::next(each) : connections_.erase(each);
    }
  }
}

void FaultyProxy::Accept() {
  Fd dialer(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const auto target = ParseLinkAddress(target_);
  Fd acceptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(acceptor.get(), reinterpret_cast<const sockaddr*>(&target->storage),
              target->length) != 0) {
    return;
  }
  fcntl(acceptor.get(), F_SETFL, O_NONBLOCK);
  connections_.push_back({std::move(dialer), std::move(acceptor), {}, {}, false});
}

bool FaultyProxy::Forward(Connection& connection) {
  if (connection.is_cut) return true;
  const bool goes_on = Move(connection, connection.dialer, connection.acceptor, connection.up) &&
                       Move(connection, connection.acceptor, connection.dialer, connection.down);
  if (connection.is_cut) {
    connection.dialer.reset();
    return true;
  }
  return goes_on && !(connection.up.ended && connection.down.ended && connection.up.held.empty() &&
                      connection.down.held.empty());
}

bool FaultyProxy::Move(Connection& connection, const Fd& from, const Fd& to, Way& way) {
  if (!way.ended && way.held.size() < kMostHeld) {
    std::string bytes(dribbles_ ? kDribble : kMostHeld, '\0');
    const ssize_t got = recv(from.get(), &bytes[0], bytes.size(), 0);
    if (got == 0) {
      way.ended = true;
    } else if (got < 0 && errno != EAGAIN) {
      ResetOnClose(to);
      return false;
    } else if (got > 0) {
      bytes.resize(got);
      const Fault::Kind fault = passed_ + got > fault_.after ? fault_.kind : Fault::kNone;
      if (fault != Fault::kNone) Strike(connection, bytes);
      passed_ += got;
      way.held += bytes;
      if (stalls_ || connection.is_cut) return true;
      if (fault == Fault::kReset || fault == Fault::kClose) return false;
    }
  }
  if (!way.held.empty()) {
    const ssize_t sent = send(to.get(), way.held.data(), way.held.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      ResetOnClose(from);
      return false;
    }
    if (sent > 0) way.held.erase(0, sent);
  }
  if (way.ended && way.held.empty()) shutdown(to.get(), SHUT_WR);
  return true;
}

void FaultyProxy::Strike(Connection& connection, std::string& bytes) {
  switch (std::exchange(fault_.kind, Fault::kNone)) {
    case Fault::kNone:
    case Fault::kClose:
      break;
    case Fault::kReset:
      ResetOnClose(connection.dialer);
      ResetOnClose(connection.acceptor);
      break;
    case Fault::kCutDialer:
      connection.is_cut = true;
      break;
    case Fault::kStall:
      stalls_ = true;
      break;
    case Fault::kDribble:
      dribbles_ = true;
      break;
    case Fault::kFlip:
      bytes[fault_.after - std::min(fault_.after, passed_)] ^= 0x10;
      break;
  }
}

}  // namespace hvd::collectives::tcp
