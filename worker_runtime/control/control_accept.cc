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

// The limit of unproven connections is the number of members plus this.
constexpr size_t kMostStrangers = 256;
// A stranger that has named its rank has this long to prove it. After that it may be dismissed to
// free a descriptor.
constexpr absl::Duration kPatience = absl::Seconds(5);
// How long to stop accepting when no descriptors are left.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// The largest number of events, and of accepted connections, handled in one turn, so that neither
// delays the other for long.
constexpr int kMostAtOnce = 64;

// Accepts the members' connections among those of strangers: connections without a proof yet.
//
// When there are too many strangers, one must go. Members send their rank at once, so the oldest
// silent stranger goes first. Since anyone can send a rank, the oldest one that has named a rank
// goes next, never the newest connection: otherwise idle strangers could keep all members out for
// as long as they like. Members alone never exceed the limit, and a member that was dismissed
// connects again.
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
      // Last, because it may destroy connections that `events` points to.
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
    absl::Time since;            // when it was added to silent_ or moved to named_
    bool told_name = false;      // whether it is in named_, not in silent_
    Strangers::iterator self{};  // its position in that list
  };
  // The event sources other than strangers: two values that differ from every stranger's address.
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
    Serve(added, now);  // the rank may have arrived already; then it does not count as silent
  }

  // Frees a descriptor: dismisses the oldest silent stranger, or else the oldest one that has named
  // its rank, if its time has passed. Returns false if there is none.
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
      // kWantsToWrite is a failure: the handshake's bytes are far fewer than a new socket's buffer
      // takes.
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
    // The first proven connection of a rank is kept.
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
                                    ", but got no control connection from rank ",
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
  Strangers named_;                                    // have named their rank; oldest first
  absl::Time accepts_again_ = absl::InfiniteFuture();  // when to accept again, if that has stopped
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
