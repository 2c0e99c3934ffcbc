// Rank 0's side of the connection setup of a control channel.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "worker_runtime/control/control_connect.h"
#include "worker_runtime/control/handshake_io.h"

namespace hvd::worker_runtime::control {
namespace {

// The number of connections beyond one for each member.
constexpr size_t kMostStrangers = 256;
// The time for a stranger that has named its rank to prove it, before it may be dismissed.
constexpr absl::Duration kPatience = absl::Seconds(5);
// The pause until there may be descriptors again.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// The limit of each kind in one turn, so that none keeps the others waiting.
constexpr int kMostAtOnce = 64;

// Strangers: connections that have proved nothing yet. Members send their rank at once; so silent
// strangers go first when there is no room. But anyone can send a rank: then the oldest of those
// go, never a new one, or so many strangers would keep all members out for as long as they like.
// Members alone are never too many, and one that lost its place to a stranger comes again.
class Acceptor {
 public:
  Acceptor(const collectives::GroupInfo& group, int listener, Fd epoll)
      : group_(group), listener_(listener), epoll_(std::move(epoll)), members_(group.size) {}

  absl::StatusOr<std::vector<net::Wire>> Run(const WaitBounds& bounds) {
    const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
    RETURN_IF_ERROR(Watch(listener_, kListener));
    if (bounds.cancellation != nullptr && bounds.cancellation->fd() >= 0) {
      RETURN_IF_ERROR(Watch(bounds.cancellation->fd(), kCancellation));
    }
    while (missing_ > 0) {
      std::array<epoll_event, kMostAtOnce> events;
      const int count = epoll_wait(epoll_.get(), events.data(), kMostAtOnce,
                                   net::TimeoutUntil(std::min(deadline, accepts_again_)));
      if (count < 0 && errno != EINTR) return Failed("epoll_wait");
      const absl::Time now = Clock::Real().Now();
      if (bounds.cancellation != nullptr) RETURN_IF_ERROR(bounds.cancellation->status());
      if (now >= deadline) return MissingError(bounds.timeout);
      bool newcomers = false;
      for (int i = 0; i < count; ++i) {
        Stranger* const stranger = static_cast<Stranger*>(events[i].data.ptr);
        if (stranger == kListener) newcomers = true;
        if (stranger != kListener && stranger != kCancellation) Serve(*stranger, now);
      }
      // Last: it may dismiss the connections of these events.
      if (newcomers) Accept(now);
      if (now >= accepts_again_) RETURN_IF_ERROR(GoOnAccepting());
    }
    return std::move(members_);
  }

 private:
  struct Stranger;
  using Strangers = std::list<Stranger>;
  struct Stranger {
    net::Wire wire;
    std::unique_ptr<collectives::PeerHandshake> handshake;  // null: the wire is not open yet
    std::string buffer;
    absl::Time since;            // it is among those where it is
    bool told_name = false;      // it is one of named_
    Strangers::iterator self{};  // its place there
  };
  // What else there is to watch.
  Stranger* const kListener = nullptr;
  Stranger* const kCancellation = reinterpret_cast<Stranger*>(&missing_);

  absl::Status Failed(absl::string_view what) {
    return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
  }

  absl::Status Watch(int fd, Stranger* source) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = source;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Failed("epoll_ctl");
    return absl::OkStatus();
  }

  void Accept(absl::Time now) {
    for (int i = 0; i < kMostAtOnce; ++i) {
      Fd fd(accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd.valid()) {
        Add(std::move(fd), now);
      } else if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) {
        return;
      } else if (!SendOneAway(now)) {
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
        accepts_again_ = now + kPause;
        return;
      }
    }
  }

  absl::Status GoOnAccepting() {
    accepts_again_ = absl::InfiniteFuture();
    return Watch(listener_, kListener);
  }

  void Add(Fd fd, absl::Time now) {
    if (silent_.size() + named_.size() >= members_.size() + kMostStrangers) {
      Dismiss(silent_.empty() ? named_.front() : silent_.front());
    }
    Stranger& added = silent_.emplace_back(
        Stranger{net::Wire(std::move(fd), group_.tls, net::TlsEnd::kAccepts), nullptr, "", now});
    added.self = std::prev(silent_.end());
    if (!Watch(added.wire.fd(), &added).ok()) return Dismiss(added);
    Serve(added, now);  // its name may be here, and then it is not taken for a silent one
  }

  // To free a descriptor: dismisses the oldest silent stranger, or else the oldest one whose time
  // has passed. False: there is none.
  bool SendOneAway(absl::Time now) {
    if (silent_.empty() && (named_.empty() || now < named_.front().since + kPatience)) return false;
    Dismiss(silent_.empty() ? named_.front() : silent_.front());
    return true;
  }

  void Dismiss(Stranger& stranger) {
    ++refused_;
    Forget(stranger);
  }

  void Forget(Stranger& stranger) {
    Strangers& place = stranger.told_name ? named_ : silent_;
    place.erase(stranger.self);
  }

  void Serve(Stranger& stranger, absl::Time now) {
    if (stranger.handshake == nullptr) {
      const net::Opening opening = stranger.wire.Open();
      if (opening == net::Opening::kWantsToRead) return;
      // What it writes is far smaller than a fresh socket's buffer.
      if (opening != net::Opening::kDone) return Dismiss(stranger);
      stranger.handshake =
          collectives::MakeAcceptorHandshake(kControlProtocol, group_, stranger.wire.Binding());
    }
    const size_t wanted = stranger.handshake->wanted();
    const ReadOutcome read = ReadTowards(stranger.wire, wanted, stranger.buffer);
    if (read == ReadOutcome::kPartial) return;
    if (read == ReadOutcome::kEnd) return Dismiss(stranger);
    auto answer = stranger.handshake->Step(std::exchange(stranger.buffer, ""));
    if (!answer.ok()) return Dismiss(stranger);
    if (stranger.handshake->wanted() == 0) return Admit(stranger, *answer);
    if (!SendAll(stranger.wire, *answer)) return Dismiss(stranger);
    named_.splice(named_.end(), silent_, stranger.self);
    stranger.told_name = true;
    stranger.since = now;
  }

  void Admit(Stranger& stranger, const std::string& welcome) {
    net::Wire& member = members_[stranger.handshake->peer()];
    // The first of a rank stays.
    if (member.valid() || !net::TuneForMessages(stranger.wire.fd()).ok() ||
        !SendAll(stranger.wire, welcome)) {
      return Dismiss(stranger);
    }
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stranger.wire.fd(), nullptr);
    member = std::move(stranger.wire);
    --missing_;
    Forget(stranger);
  }

  absl::Status MissingError(absl::Duration timeout) const {
    std::vector<int> missing;
    for (int rank = 1; rank < group_.size; ++rank) {
      if (!members_[rank].valid()) missing.push_back(rank);
    }
    std::string text = absl::StrCat("rank 0 waited ", absl::FormatDuration(timeout),
                                    " in vain for the control connection of rank ",
                                    absl::StrJoin(missing, ", rank "));
    if (refused_ > 0) absl::StrAppend(&text, "; ", refused_, " connections without proof refused");
    return absl::DeadlineExceededError(text);
  }

  const collectives::GroupInfo& group_;
  const int listener_;
  const Fd epoll_;
  std::vector<net::Wire> members_;
  int missing_ = group_.size - 1;
  Strangers silent_;                                   // oldest first
  Strangers named_;                                    // oldest first; they have yet to prove it
  absl::Time accepts_again_ = absl::InfiniteFuture();  // until then no more files can be opened
  int refused_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<net::Wire>> AcceptMembers(const collectives::GroupInfo& group,
                                                     int listener, const WaitBounds& bounds) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) {
    return absl::UnavailableError(absl::StrCat("epoll_create1: ", strerror(errno)));
  }
  return Acceptor(group, listener, std::move(epoll)).Run(bounds);
}

}  // namespace hvd::worker_runtime::control
