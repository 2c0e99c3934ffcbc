// Rank 0's side of the connection setup of a control channel.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/net/accept.h"
#include "base/net/peer_source.h"
#include "base/net/strangers.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "worker_runtime/control/control_connect.h"
#include "worker_runtime/control/handshake_io.h"

namespace hvd::worker_runtime::control {
namespace {

// At each stage of the handshake there may be as many unproven connections as members, and these.
constexpr size_t kSpareStrangers = 128;
// How long a connection may take to prove that it is a member's. Long, since a member may be
// starved of CPU.
constexpr absl::Duration kPatience = absl::Seconds(30);
// The largest number of events, and of accepted connections, handled in one turn, so that neither
// delays the other for long.
constexpr int kMostAtOnce = 64;

// Accepts the members' connections among those of strangers: connections without a proof yet.
//
// net::Strangers decides who goes when there are too many. Members alone never exceed the bound,
// and a member that was dismissed connects again.
class Acceptor {
 public:
  Acceptor(const collectives::GroupInfo& group, int listener, Fd epoll)
      : group_(group),
        listener_(listener),
        epoll_(std::move(epoll)),
        members_(group.size),
        strangers_(kSpareStrangers + static_cast<size_t>(group.size)) {}

  absl::StatusOr<std::vector<net::Wire>> Run(const WaitBounds& bounds) {
    const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
    RETURN_IF_ERROR(Watch(listener_, kListener));
    if (bounds.cancellation != nullptr && bounds.cancellation->fd() >= 0) {
      RETURN_IF_ERROR(Watch(bounds.cancellation->fd(), kCancellation));
    }
    while (missing_ > 0) {
      std::array<epoll_event, kMostAtOnce> events;
      const int count =
          epoll_wait(epoll_.get(), events.data(), kMostAtOnce,
                     net::TimeoutUntil(std::min({deadline, accepts_again_, NextExpiry()})));
      if (count < 0 && errno != EINTR) return Failed("epoll_wait");
      const absl::Time now = Clock::Real().Now();
      if (bounds.cancellation != nullptr) RETURN_IF_ERROR(bounds.cancellation->status());
      if (now >= deadline) return MissingError(bounds.timeout);
      for (int i = 0; i < count; ++i) Serve(events[i].data.u64);
      while (NextExpiry() <= now) Dismiss(openings_.begin()->first);
      if (now >= accepts_again_) RETURN_IF_ERROR(GoOnAccepting());
    }
    return std::move(members_);
  }

 private:
  using Id = net::Strangers::Id;
  using Stage = net::Strangers::Stage;
  struct Stranger {
    net::Wire wire;
    absl::Time expires;
    std::unique_ptr<collectives::PeerHandshake> handshake;  // null: the wire is not open yet
    std::string buffer;
  };
  // The event sources other than strangers: no stranger has such an id.
  static constexpr Id kListener = ~Id{0};
  static constexpr Id kCancellation = ~Id{1};

  absl::Status Failed(absl::string_view what) {
    return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
  }

  absl::Status Watch(int fd, Id source) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = source;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Failed("epoll_ctl");
    return absl::OkStatus();
  }

  // All have the same time, so the first one's ends first.
  absl::Time NextExpiry() const {
    return openings_.empty() ? absl::InfiniteFuture() : openings_.begin()->second.expires;
  }

  void Accept() {
    for (int i = 0; i < kMostAtOnce; ++i) {
      net::Accepted accepted = net::Accept(listener_);
      if (accepted.connection.valid()) {
        Add(std::move(accepted.connection));
      } else if (!accepted.out_of_files) {
        return;
      } else if (!MakeRoom()) {
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
        accepts_again_ = Clock::Real().Now() + net::kAcceptPause;
        return;
      }
    }
  }

  absl::Status GoOnAccepting() {
    accepts_again_ = absl::InfiniteFuture();
    return Watch(listener_, kListener);
  }

  void Add(Fd fd) {
    const Id id = strangers_.Add(net::PeerSource(fd.get()));
    const Stranger& added =
        openings_
            .emplace(id, Stranger{net::Wire(std::move(fd), group_.tls, net::TlsEnd::kAccepts),
                                  Clock::Real().Now() + kPatience, nullptr, ""})
            .first->second;
    if (!Watch(added.wire.fd(), id).ok()) return Dismiss(id);
    Serve(id);  // its first message may have arrived already; then it does not count as silent
  }

  bool MakeRoom() {
    const std::optional<Id> gone = strangers_.LeastLikelyMember();
    if (gone.has_value()) Dismiss(*gone);
    return gone.has_value();
  }

  void Dismiss(Id id) {
    ++refused_;
    Forget(id);
  }

  void Forget(Id id) {
    openings_.erase(id);
    strangers_.Remove(id);
  }

  // An event of `source`. A stranger may have gone since the event.
  void Serve(Id source) {
    if (source == kCancellation) return;
    if (source == kListener) return Accept();
    const auto found = openings_.find(source);
    if (found == openings_.end()) return;
    switch (Advance(found->second)) {
      case Progress::kFailed:
        return Dismiss(source);
      case Progress::kProved:
        return Forget(source);
      case Progress::kWants:
        break;
    }
    strangers_.Reach(source, StageOf(found->second));
    while (const std::optional<Id> surplus = strangers_.Surplus()) Dismiss(*surplus);
  }

  static Stage StageOf(const Stranger& stranger) {
    // This end's TLS handshake is complete only once it has checked the peer's certificate.
    if (stranger.handshake != nullptr && stranger.wire.encrypted()) return Stage::kCertified;
    return stranger.wire.heard() ? Stage::kHeard : Stage::kSilent;
  }

  enum class Progress { kWants, kProved, kFailed };

  Progress Advance(Stranger& stranger) {
    if (stranger.handshake == nullptr) {
      const net::Opening opening = stranger.wire.Open();
      if (opening == net::Opening::kWantsToRead) return Progress::kWants;
      // kWantsToWrite is a failure: the handshake's bytes are far fewer than a new socket's buffer
      // takes.
      if (opening != net::Opening::kDone) return Progress::kFailed;
      stranger.handshake =
          collectives::MakeAcceptorHandshake(kControlProtocol, group_, stranger.wire.Binding());
    }
    while (true) {
      const ReadOutcome read =
          ReadTowards(stranger.wire, stranger.handshake->wanted(), stranger.buffer);
      if (read == ReadOutcome::kPartial) return Progress::kWants;
      if (read == ReadOutcome::kEnd) return Progress::kFailed;
      auto answer = stranger.handshake->Step(std::exchange(stranger.buffer, ""));
      if (!answer.ok()) return Progress::kFailed;
      if (stranger.handshake->wanted() == 0) return Admit(stranger, *answer);
      if (!SendAll(stranger.wire, *answer)) return Progress::kFailed;
    }
  }

  Progress Admit(Stranger& stranger, const std::string& welcome) {
    net::Wire& member = members_[stranger.handshake->peer()];
    // The first proven connection of a rank is kept.
    if (member.valid() || !net::TuneForMessages(stranger.wire.fd()).ok() ||
        !SendAll(stranger.wire, welcome)) {
      return Progress::kFailed;
    }
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stranger.wire.fd(), nullptr);
    member = std::move(stranger.wire);
    --missing_;
    return Progress::kProved;
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
  net::Strangers strangers_;
  std::map<Id, Stranger> openings_;                    // of strangers_, in the order of arrival
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
