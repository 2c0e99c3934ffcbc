#include "agent/route_finder.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/address.h"
#include "base/text/duration_text.h"

namespace hvd::agent {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(250);

std::string NotTheDaemon(const std::string& why) {
  return absl::StrCat("what answers there is not the daemon of this job (", why, ")");
}

}  // namespace

RouteFinder::RouteFinder(EventLoop& loop, const std::vector<std::string>& candidates,
                         std::shared_ptr<const net::TlsContext> tls, absl::Duration timeout,
                         Done done)
    : loop_(loop), tls_(candidates.size() > 1 ? std::move(tls) : nullptr), done_(std::move(done)) {
  // All at once: a firewall that drops packets would hold up those that come after it.
  for (const std::string& candidate : candidates) Try(candidate);
  // If all attempts failed at once, the timer fires immediately: `done` is always called from the
  // loop, never by the constructor.
  if (attempts_.empty()) timeout = absl::ZeroDuration();
  deadline_ = loop_.After(timeout, [this, timeout] { OnLate(timeout); });
}

// A daemon that is busy with many agents accepts connections, but needs time for its proofs.
void RouteFinder::OnLate(absl::Duration timeout) {
  bool connected = false;
  for (const auto& [fd, attempt] : attempts_) connected |= !attempt.own_address.empty();
  if (connected && !is_late_) {
    is_late_ = true;
    deadline_ = loop_.After(2 * timeout, [this, timeout] { OnLate(3 * timeout); });
    return;
  }
  for (const auto& [fd, attempt] : attempts_) {
    Fail(attempt.candidate, absl::StrCat("no answer within ", text::DurationText(timeout)));
  }
  for (const auto& [timer, candidate] : later_) Fail(candidate, NotTheDaemon("it hung up"));
  Finish(absl::UnavailableError(absl::StrJoin(failures_, "; ")));
}

RouteFinder::~RouteFinder() { StopTrying(); }

void RouteFinder::StopTrying() {
  loop_.Cancel(deadline_);
  for (const auto& [fd, attempt] : attempts_) loop_.Forget(fd);
  for (const auto& [timer, candidate] : later_) loop_.Cancel(timer);
  attempts_.clear();
  later_.clear();
}

void RouteFinder::Try(const std::string& candidate) {
  const absl::StatusOr<net::SocketAddress> address = net::ParseSocketAddress(candidate);
  if (!address.ok()) return Fail(candidate, std::string(address.status().message()));
  Fd fd(socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Fail(candidate, strerror(errno));
  const int rc =
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address->storage), address->length);
  if (rc != 0 && errno != EINPROGRESS) return Fail(candidate, strerror(errno));
  const int number = fd.get();
  const absl::Status watched =
      loop_.Watch(number, EPOLLOUT, [this, number](uint32_t) { Advance(number); });
  if (!watched.ok()) return Fail(candidate, std::string(watched.message()));
  attempts_[number] = {candidate, "", std::move(fd), net::Wire()};
}

void RouteFinder::Advance(int fd) {
  if (attempts_.at(fd).own_address.empty()) return OnConnected(fd);
  Prove(fd);
}

void RouteFinder::OnConnected(int fd) {
  Attempt& attempt = attempts_.at(fd);
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  net::SocketAddress own;
  own.length = sizeof(own.storage);
  if (error == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&own.storage), &own.length) != 0) {
    error = errno;
  }
  if (error != 0) return Drop(fd, strerror(error));
  // The source address is one at which the daemon's network reaches this host, whatever its
  // interfaces are called.
  attempt.own_address = net::NumericHost(own);
  attempt.wire = net::Wire(std::move(attempt.fd), tls_, net::TlsEnd::kConnects);
  Prove(fd);
}

void RouteFinder::Prove(int fd) {
  Attempt& attempt = attempts_.at(fd);
  switch (attempt.wire.Open()) {
    case net::Opening::kDone:
      return Finish(Route{attempt.candidate, attempt.own_address});
    case net::Opening::kWantsToRead:
      return loop_.Change(fd, EPOLLIN);
    case net::Opening::kWantsToWrite:
      return loop_.Change(fd, EPOLLOUT);
    case net::Opening::kFailed:
      if (!attempt.wire.unsafe()) return TryAgainLater(fd);
      return Drop(fd, NotTheDaemon(attempt.wire.failure()));
  }
}

void RouteFinder::Drop(int fd, const std::string& why) {
  loop_.Forget(fd);
  Fail(attempts_.at(fd).candidate, why);
  attempts_.erase(fd);
  FinishIfAllFailed();
}

void RouteFinder::TryAgainLater(int fd) {
  loop_.Forget(fd);
  const std::string candidate = std::move(attempts_.at(fd).candidate);
  attempts_.erase(fd);
  // The timer's name is known only once it has been made.
  auto timer = std::make_shared<EventLoop::TimerId>();
  *timer = loop_.After(kPause, [this, timer, candidate] {
    later_.erase(*timer);
    Try(candidate);
    FinishIfAllFailed();
  });
  later_.emplace(*timer, candidate);
}

void RouteFinder::FinishIfAllFailed() {
  if (!attempts_.empty() || !later_.empty()) return;
  Finish(absl::UnavailableError(absl::StrJoin(failures_, "; ")));
}

void RouteFinder::Fail(const std::string& candidate, const std::string& why) {
  failures_.push_back(absl::StrCat(candidate, ": ", why));
}

void RouteFinder::Finish(absl::StatusOr<Route> result) {
  StopTrying();
  // Moved out first, since `done` may destroy this object.
  const Done done = std::move(done_);
  done(std::move(result));
}

}  // namespace hvd::agent
