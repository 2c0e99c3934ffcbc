#include "worker_runtime/control/control_channel.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/net/tcp_socket.h"
#include "base/net/wire.h"
#include "base/status_macros.h"
#include "collectives/unreached_rank.h"
#include "worker_runtime/control/control_connect.h"
#include "worker_runtime/control/control_messages.h"
#include "worker_runtime/control/frame_seal.h"

namespace hvd::worker_runtime::control {
namespace {

// One end of a link.
struct Peer {
  net::Wire wire;
  // Without TLS the frames are sealed; null: with it.
  std::unique_ptr<FrameSeal> seals_sent;
  std::unique_ptr<FrameSeal> seals_received;
  std::optional<MessageDecoder> decoder;  // with a wire
  absl::Time part_since;                  // if it is in partial_
  uint64_t frames_then = 0;               // the decoder's frames at that time
  std::string unsent;
  size_t unsent_from = 0;
  bool waits_for_room = false;  // epoll also watches for room to write
  absl::Status gone;            // not OK: the peer is gone, and its socket closed
};

absl::Status Gone(int rank, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " is gone: ", why));
}

class TcpControlChannel : public ControlChannel {
 public:
  // `wires` has one entry per rank; those of ranks without a connection to this one are invalid.
  TcpControlChannel(const collectives::GroupInfo& group, std::vector<net::Wire> wires, Fd epoll,
                    Fd wake, absl::Duration part_patience)
      : rank_(group.rank),
        size_(group.size),
        part_patience_(part_patience),
        peers_(wires.size()),
        epoll_(std::move(epoll)),
        wake_(std::move(wake)) {
    for (size_t rank = 0; rank < wires.size(); ++rank) {
      if (wires[rank].valid()) Equip(static_cast<int>(rank), group, std::move(wires[rank]));
    }
  }

  absl::Status Start();

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status Send(int peer, absl::string_view message) override;
  absl::Status Flush(absl::Duration timeout) override;
  absl::StatusOr<std::vector<Message>> Receive(absl::Duration timeout) override;
  bool PrepareSleep() override;
  void AwaitWake(absl::Duration timeout) override;
  void StayAwake() override {}  // epoll is level-triggered, so no event is lost
  void TakeOver() override {}
  bool WaitsCheaply() const override { return size_ == 1; }
  void Wake() override;
  void Finish(absl::Duration timeout, absl::FunctionRef<bool()> give_up,
              absl::FunctionRef<void(Message)> on_message) override;

 private:
  // The eventfd's tag in epoll. The tag of a peer is its rank.
  uint64_t WakeTag() const { return peers_.size(); }

  void Equip(int rank, const collectives::GroupInfo& group, net::Wire wire);
  absl::Status Watch(int operation, int fd, uint32_t events, uint64_t tag);
  // Waits for events until `deadline`, and handles them.
  absl::Status HandleEvents(absl::Time deadline);
  void HandlePeer(int rank, uint32_t events);
  void ReadFrom(int rank);
  void ReadAll(int rank);
  void TakeMessages(int rank);
  // Parts of messages: see kPartPatience.
  void NotePart(int rank);
  absl::Time NextPartDeadline() const;
  void LoseOldParts();
  void WriteTo(int rank);
  // With the reason of its wire. `silent`: the network does not reach it any more.
  void Lose(int rank, bool silent);
  void Lose(int rank, const absl::Status& gone);
  const Peer* FindUnsent() const;

  const int rank_;
  const int size_;
  const absl::Duration part_patience_;
  std::vector<Peer> peers_;
  std::set<int> partial_;  // the peers of which a part of a message is here
  const Fd epoll_;
  const Fd wake_;
  std::vector<Message> received_;
  absl::Status lost_;  // the first peer that is gone
  bool woken_ = false;
  std::atomic<int64_t> parts_end_ = INT64_MAX;  // NextPartDeadline for AwaitWake, in nanoseconds
};

void TcpControlChannel::Equip(int rank, const collectives::GroupInfo& group, net::Wire wire) {
  Peer& peer = peers_[rank];
  peer.wire = std::move(wire);
  if (group.tls == nullptr) {
    peer.seals_sent = std::make_unique<FrameSeal>(group.secret, rank_, rank);
    peer.seals_received = std::make_unique<FrameSeal>(group.secret, rank, rank_);
  }
  peer.decoder.emplace(peer.seals_received.get());
}

absl::Status TcpControlChannel::Watch(int operation, int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll_.get(), operation, fd, &event) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("epoll_ctl: ", strerror(errno)));
}

absl::Status TcpControlChannel::Start() {
  RETURN_IF_ERROR(Watch(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, WakeTag()));
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].wire.valid()) continue;
    RETURN_IF_ERROR(Watch(EPOLL_CTL_ADD, peers_[rank].wire.fd(), EPOLLIN, rank));
    // The handshake may have read into TLS's buffer; epoll does not report such bytes.
    if (peers_[rank].wire.HasBuffered()) ReadFrom(static_cast<int>(rank));
  }
  return absl::OkStatus();
}

absl::Status TcpControlChannel::Send(int peer, absl::string_view message) {
  Peer& to = peers_[peer];
  if (!to.gone.ok()) return to.gone;
  ASSIGN_OR_RETURN(const std::string frames, EncodeMessage(message, to.seals_sent.get()));
  // Written at once if the socket takes it. Otherwise epoll says when to go on; until then further
  // messages only join the queue.
  to.unsent += frames;
  if (!to.waits_for_room) WriteTo(peer);
  return to.gone;
}

void TcpControlChannel::WriteTo(int rank) {
  Peer& peer = peers_[rank];
  while (peer.unsent_from < peer.unsent.size()) {
    const IoResult sent = peer.wire.Write(absl::string_view(peer.unsent).substr(peer.unsent_from));
    if (sent.end) return Lose(rank, sent.silent);
    if (sent.would_block) break;
    peer.unsent_from += sent.bytes;
  }
  const bool full = peer.unsent_from < peer.unsent.size();
  if (!full) {
    peer.unsent.clear();
    peer.unsent_from = 0;
  }
  if (full == peer.waits_for_room) return;
  peer.waits_for_room = full;
  // EPOLLOUT is watched only while something is queued: a socket with room would always be ready.
  const uint32_t events = full ? EPOLLIN | EPOLLOUT : EPOLLIN;
  absl::Status watched = Watch(EPOLL_CTL_MOD, peer.wire.fd(), events, rank);
  if (!watched.ok()) Lose(rank, Gone(rank, watched.message()));
}

const Peer* TcpControlChannel::FindUnsent() const {
  for (const Peer& peer : peers_) {
    if (peer.gone.ok() && !peer.unsent.empty()) return &peer;
  }
  return nullptr;
}

absl::Status TcpControlChannel::Flush(absl::Duration timeout) {
  if (FindUnsent() == nullptr) return absl::OkStatus();
  const absl::Time deadline = Clock::Real().Now() + timeout;
  while (const Peer* peer = FindUnsent()) {
    if (Clock::Real().Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", peer - peers_.data(),
                                                      " has not read its control messages for ",
                                                      absl::FormatDuration(timeout)));
    }
    RETURN_IF_ERROR(HandleEvents(deadline));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ControlChannel::Message>> TcpControlChannel::Receive(
    absl::Duration timeout) {
  const absl::Time deadline =
      timeout == absl::InfiniteDuration() ? absl::InfiniteFuture() : Clock::Real().Now() + timeout;
  while (received_.empty() && lost_.ok() && !woken_) {
    RETURN_IF_ERROR(HandleEvents(deadline));
    if (deadline != absl::InfiniteFuture() && Clock::Real().Now() >= deadline) break;
  }
  woken_ = false;
  // Messages first: the last one of a lost peer may have the reason.
  if (received_.empty() && !lost_.ok()) return lost_;
  return std::exchange(received_, {});
}

absl::Status TcpControlChannel::HandleEvents(absl::Time deadline) {
  constexpr int kMostEvents = 64;
  epoll_event events[kMostEvents];
  deadline = std::min(deadline, NextPartDeadline());
  const int count = epoll_wait(epoll_.get(), events, kMostEvents, net::TimeoutUntil(deadline));
  if (count < 0 && errno != EINTR) {
    return absl::InternalError(absl::StrCat("epoll_wait: ", strerror(errno)));
  }
  // Only if there is nothing to read: this thread may have been busy for longer.
  if (count == 0) LoseOldParts();
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == WakeTag()) {
      uint64_t times = 0;
      woken_ = read(wake_.get(), &times, sizeof(times)) == sizeof(times) || woken_;
    } else {
      HandlePeer(static_cast<int>(events[i].data.u64), events[i].events);
    }
  }
  return absl::OkStatus();
}

// The rest of a message that does not come raises no event.
bool TcpControlChannel::PrepareSleep() {
  parts_end_ = absl::ToUnixNanos(NextPartDeadline());
  return received_.empty() && lost_.ok() && !woken_;
}

void TcpControlChannel::AwaitWake(absl::Duration timeout) {
  absl::Time deadline =
      timeout == absl::InfiniteDuration() ? absl::InfiniteFuture() : Clock::Real().Now() + timeout;
  if (const int64_t end = parts_end_; end != INT64_MAX) {
    deadline = std::min(deadline, absl::FromUnixNanos(end));
  }
  // Only waits, and handles nothing: another thread may be using the channel's state now.
  epoll_event event;
  epoll_wait(epoll_.get(), &event, 1, net::TimeoutUntil(deadline));
}

void TcpControlChannel::HandlePeer(int rank, uint32_t events) {
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) ReadFrom(rank);
  if ((events & EPOLLOUT) != 0 && peers_[rank].gone.ok()) WriteTo(rank);
}

void TcpControlChannel::ReadFrom(int rank) {
  ReadAll(rank);
  NotePart(rank);
}

void TcpControlChannel::ReadAll(int rank) {
  char buffer[16 << 10];
  Peer& peer = peers_[rank];
  do {
    const IoResult got = peer.wire.Read(buffer, sizeof(buffer));
    if (got.would_block) return;
    if (got.end) return Lose(rank, got.silent);
    peer.decoder->Append(absl::string_view(buffer, got.bytes));
    TakeMessages(rank);
    // TLS may have read more from the socket than it has returned. Such bytes raise no epoll event,
    // so they must be read now.
  } while (peer.gone.ok() && peer.wire.HasBuffered());
}

void TcpControlChannel::TakeMessages(int rank) {
  Peer& peer = peers_[rank];
  while (true) {
    absl::StatusOr<std::optional<std::string>> message = peer.decoder->Next();
    if (!message.ok()) return Lose(rank, Gone(rank, message.status().message()));
    if (!message->has_value()) return;
    received_.push_back(Message{rank, **std::move(message)});
  }
}

void TcpControlChannel::NotePart(int rank) {
  Peer& peer = peers_[rank];
  if (!peer.gone.ok() || !(peer.decoder->has_part() || peer.wire.HasBuffered())) {
    partial_.erase(rank);
    return;
  }
  const bool is_new = partial_.insert(rank).second;
  if (!is_new && peer.frames_then == peer.decoder->frames()) return;
  peer.frames_then = peer.decoder->frames();
  peer.part_since = Clock::Real().Now();
}

absl::Time TcpControlChannel::NextPartDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const int rank : partial_) next = std::min(next, peers_[rank].part_since + part_patience_);
  return next;
}

void TcpControlChannel::LoseOldParts() {
  if (partial_.empty()) return;
  const absl::Time now = Clock::Real().Now();
  for (const int rank : std::set<int>(partial_)) {
    if (now < peers_[rank].part_since + part_patience_) continue;
    Lose(rank, Gone(rank, absl::StrCat("only a part of its message has come, for ",
                                       absl::FormatDuration(part_patience_),
                                       "; it was changed on the way, or the network loses data")));
  }
}

void TcpControlChannel::Lose(int rank, bool silent) {
  const std::string failure = peers_[rank].wire.failure();
  const absl::Status gone =
      Gone(rank, failure.empty() ? "it closed its control connection" : failure);
  Lose(rank, silent ? collectives::WithUnreachedRank(gone, rank) : gone);
}

void TcpControlChannel::Lose(int rank, const absl::Status& gone) {
  Peer& peer = peers_[rank];
  peer.gone = gone;
  peer.wire.Close();
  partial_.erase(rank);
  if (lost_.ok()) lost_ = peer.gone;
}

void TcpControlChannel::Wake() {
  const uint64_t once = 1;
  // Errors don't matter: the write can only fail if the counter is full, and then it wakes as well.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &once, sizeof(once));
}

void TcpControlChannel::Finish(absl::Duration timeout, absl::FunctionRef<bool()> give_up,
                               absl::FunctionRef<void(Message)> on_message) {
  const absl::Time deadline = Clock::Real().Now() + timeout;
  // Best effort: a peer that does not read its messages loses them.
  if (!give_up()) Flush(timeout).IgnoreError();
  for (Peer& peer : peers_) {
    if (peer.wire.valid()) peer.wire.EndWriting();
  }
  auto open = [this] {
    for (const Peer& peer : peers_) {
      if (peer.wire.valid()) return true;
    }
    return false;
  };
  auto hand_over = [&] {
    for (Message& message : std::exchange(received_, {})) on_message(std::move(message));
  };
  hand_over();
  // Reads on until the peers have closed their ends, too: closing a socket with unread data resets
  // the connection, and the peer might lose the last messages.
  while (open() && !give_up() && Clock::Real().Now() < deadline && HandleEvents(deadline).ok()) {
    hand_over();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> ControlChannel::Connect(
    const collectives::GroupInfo& group, const std::string& root_address, int root_port,
    const WaitBounds& bounds, absl::Duration part_patience) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  Fd wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll.valid() || !wake.valid()) {
    return absl::UnavailableError(absl::StrCat("no control channel: ", strerror(errno)));
  }
  std::vector<net::Wire> wires;
  if (group.rank == 0) {
    ASSIGN_OR_RETURN(wires, AcceptMembers(group, bounds));
  } else {
    ASSIGN_OR_RETURN(net::Wire root, ConnectToRoot(group, root_address, root_port, bounds));
    wires.push_back(std::move(root));
  }
  auto channel = std::make_unique<TcpControlChannel>(group, std::move(wires), std::move(epoll),
                                                     std::move(wake), part_patience);
  RETURN_IF_ERROR(channel->Start());
  return channel;
}

}  // namespace hvd::worker_runtime::control
