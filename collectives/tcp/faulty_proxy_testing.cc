#include "collectives/tcp/faulty_proxy_testing.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "collectives/tcp/link_address.h"

namespace hvd::collectives::tcp {
namespace {

constexpr size_t kMostHeld = 256 << 10;
constexpr size_t kDribble = 700;
// What the kernel holds for a slow proxy: little, so that the ends see its pace.
constexpr int kSlowBuffer = 64 << 10;

void ResetOnClose(const Fd& fd) {
  const linger reset = {1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

void HoldLittle(const Fd& fd) {
  for (const int buffer : {SO_RCVBUF, SO_SNDBUF}) {
    setsockopt(fd.get(), SOL_SOCKET, buffer, &kSlowBuffer, sizeof(kSlowBuffer));
  }
}

// Shows proxies in place of all ranks.
class DivertedExchange : public KeyExchange {
 public:
  DivertedExchange(KeyExchange& real, ProxiedMesh& mesh) : real_(real), mesh_(mesh) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    ASSIGN_OR_RETURN(std::vector<std::string> values, real_.AllGather(key, value, timeout));
    mesh_.Divert(values);
    return values;
  }

 private:
  KeyExchange& real_;
  ProxiedMesh& mesh_;
};

}  // namespace

FaultyProxy::FaultyProxy(std::string target, Fault fault, Pace pace)
    : target_(std::move(target)),
      pace_(pace),
      fault_(fault),
      listener_(*net::ListenOnAnyPort("127.0.0.1")),
      address_(LinkAddressOf(*net::LocalAddressOf(listener_.get()))),
      stop_(eventfd(0, EFD_CLOEXEC)),
      steps_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (pace_.bytes_per_step > 0) {
    HoldLittle(listener_);  // what it accepts inherits this
    const itimerspec times = {absl::ToTimespec(pace_.step), absl::ToTimespec(pace_.step)};
    timerfd_settime(steps_.get(), 0, &times, nullptr);
  }
  thread_ = std::thread([this] { Run(); });
}

FaultyProxy::~FaultyProxy() {
  (void)eventfd_write(stop_.get(), 1);
  thread_.join();
}

void FaultyProxy::Run() {
  while (true) {
    std::vector<pollfd> polled = {
        {stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, {steps_.get(), POLLIN, 0}};
    for (const Connection& each : connections_) {
      const auto events = [this](const Way& in, const Way& out) {
        return static_cast<short>((MayRead(in) ? POLLIN : 0) |  // NOLINT: poll's own type
                                  (out.held.empty() ? 0 : POLLOUT));
      };
      if (stalls_) continue;
      if (each.dialer.valid()) polled.push_back({each.dialer.get(), events(each.up, each.down), 0});
      if (!each.is_cut) polled.push_back({each.acceptor.get(), events(each.down, each.up), 0});
    }
    poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    if (polled[1].revents != 0) Accept();
    if (polled[2].revents != 0) BeginStep();
    for (auto each = connections_.begin(); each != connections_.end() && !stalls_;) {
      each = Forward(*each) ? std::next(each) : connections_.erase(each);
    }
  }
}

void FaultyProxy::BeginStep() {
  uint64_t steps = 0;
  [[maybe_unused]] const ssize_t got = read(steps_.get(), &steps, sizeof(steps));
  left_ = pace_.bytes_per_step;
}

bool FaultyProxy::MayRead(const Way& way) const {
  return !way.ended && way.held.size() < kMostHeld && (pace_.bytes_per_step == 0 || left_ > 0);
}

void FaultyProxy::Accept() {
  Fd dialer(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const auto target = ParseLinkAddress(target_);
  Fd acceptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (pace_.bytes_per_step > 0) HoldLittle(acceptor);
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
  if (MayRead(way)) {
    const size_t most = dribbles_ ? kDribble : kMostHeld;
    std::string bytes(pace_.bytes_per_step == 0 ? most : std::min(most, left_), '\0');
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
      left_ -= std::min<size_t>(left_, got);
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

absl::StatusOr<std::unique_ptr<Communicator>> ProxiedMesh::Connect(const GroupInfo& group,
                                                                   KeyExchange& keys,
                                                                   const WaitBounds& bounds) {
  DivertedExchange diverted(keys, *this);
  return real_->Connect(group, diverted, bounds);
}

absl::StatusOr<std::unique_ptr<MeshCommunicator>> ProxiedMesh::ConnectMesh(
    const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) {
  DivertedExchange diverted(keys, *this);
  return real_->ConnectMesh(group, diverted, bounds);
}

void ProxiedMesh::Divert(std::vector<std::string>& addresses) {
  absl::MutexLock lock(&mutex_);
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    if (rank == proxies_.size()) {
      proxies_.push_back(std::make_unique<FaultyProxy>(addresses[rank], fault_, pace_));
    }
    addresses[rank] = proxies_[rank]->address();
  }
}

}  // namespace hvd::collectives::tcp
