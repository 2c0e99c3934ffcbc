#include "collectives/messages/far_lines.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/process_limits.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "collectives/messages/given_up.h"
#include "collectives/tcp/link_dialer.h"

namespace hvd::collectives::messages {
namespace {

constexpr peer::Purpose kPurpose = peer::Purpose::kTensors;
constexpr size_t kSpareFiles = 400;  // for the rest of the process, as TcpMesh has it

// The tags of events: twice the rank, and one more for a connection that the peer has dialed.
constexpr uint64_t kArrivedNews = ~uint64_t{0};
constexpr uint64_t kDialNews = kArrivedNews - 1;
uint64_t OutTag(int peer) { return 2 * static_cast<uint64_t>(peer); }
uint64_t InTag(int peer) { return OutTag(peer) + 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<FarLines>> FarLines::Make(const GroupInfo& group,
                                                         std::shared_ptr<peer::PeerInbox> inbox,
                                                         std::vector<std::string> addresses,
                                                         absl::Duration dial_timeout) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  Fd news(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !news.valid()) return absl::ErrnoToStatus(errno, "no file descriptor");
  std::unique_ptr<FarLines> lines(new FarLines(group, std::move(inbox), std::move(addresses),
                                               dial_timeout, std::move(epoll), std::move(news)));
  if (!lines->Watch(EPOLL_CTL_ADD, lines->inbox_->news(kPurpose), EPOLLIN, kArrivedNews) ||
      !lines->Watch(EPOLL_CTL_ADD, lines->dial_news_.get(), EPOLLIN, kDialNews)) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return lines;
}

FarLines::FarLines(const GroupInfo& group, std::shared_ptr<peer::PeerInbox> inbox,
                   std::vector<std::string> addresses, absl::Duration dial_timeout, Fd epoll,
                   Fd news)
    : group_(group),
      inbox_(std::move(inbox)),
      addresses_(std::move(addresses)),
      dial_timeout_(dial_timeout),
      epoll_(std::move(epoll)),
      dial_news_(std::move(news)) {}

FarLines::~FarLines() {
  stop_dialing_.Cancel(absl::AbortedError("the messenger is closed"));
  for (std::thread& thread : dialing_) thread.join();
}

bool FarLines::Watch(int operation, int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  return epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

void FarLines::Dial(int peer) {
  os::AllowMoreFiles(2 * (outs_.size() + 1) + kSpareFiles);
  try {
    dialing_.push_back(StartSignalFreeThread([this, peer] {
      EndDial({peer, tcp::DialLink(kPurpose, group_, peer, addresses_[peer],
                                   Clock::Real().Now() + dial_timeout_, &stop_dialing_)});
    }));
  } catch (const std::exception& no_thread) {
    EndDial({peer, os::StatusOf(no_thread)});
  }
}

void FarLines::EndDial(Dialed dialed) {
  absl::MutexLock lock(&mutex_);
  dialed_.push_back(std::move(dialed));
  (void)eventfd_write(dial_news_.get(), 1);
}

bool FarLines::HasNews() const {
  pollfd polled = {epoll_.get(), POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

absl::StatusOr<bool> FarLines::Move(Endpoint& endpoint) {
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  const int count = epoll_wait(epoll_.get(), events, kEvents, 0);
  bool moved = count > 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if (tag == kArrivedNews) {
      TakeArrived(endpoint);
    } else if (tag == kDialNews) {
      TakeDialed(endpoint);
    } else if (tag % 2 == 1) {
      unread_.insert(static_cast<int>(tag / 2));
    } else {
      RETURN_IF_ERROR(OnOut(endpoint, static_cast<int>(tag / 2)));
    }
  }
  for (const int peer : std::exchange(unread_, {})) {
    ASSIGN_OR_RETURN(const bool more, OnIn(endpoint, peer));
    moved = true;
    if (more) unread_.insert(peer);
  }
  AwaitRoom(endpoint);
  return moved;
}

void FarLines::TakeDialed(Endpoint& endpoint) {
  std::vector<Dialed> dialed;
  {
    absl::MutexLock lock(&mutex_);
    eventfd_t count;
    (void)eventfd_read(dial_news_.get(), &count);
    dialed = std::exchange(dialed_, {});
  }
  for (Dialed& each : dialed) {
    if (endpoint.ended(each.peer)) continue;
    if (!each.wire.ok()) {
      endpoint.EndPeer(each.peer, absl::UnavailableError(each.wire.status().message()));
      continue;
    }
    Out& out = outs_[each.peer];
    out.flow = std::make_unique<SocketFlow>(*std::move(each.wire));
    out.watched = Watch(EPOLL_CTL_ADD, out.flow->fd(), EPOLLIN, OutTag(each.peer));
    endpoint.SetOutFlow(each.peer, out.flow.get());
    endpoint.Write(each.peer);
  }
}

void FarLines::TakeArrived(Endpoint& endpoint) {
  for (auto& [peer, wire] : inbox_->TakeArrived(kPurpose)) {
    if (endpoint.ended(peer)) continue;
    In& in = ins_[peer];
    in.flow = std::make_unique<SocketFlow>(std::move(wire));
    in.watched = Watch(EPOLL_CTL_ADD, in.flow->fd(), EPOLLIN, InTag(peer));
    endpoint.SetInFlow(peer, in.flow.get());
    unread_.insert(peer);
  }
}

// The peer's own connection, if there is one, says all that it has sent, and so tells its end.
absl::Status FarLines::OnOut(Endpoint& endpoint, int peer) {
  Out& out = outs_[peer];
  if (out.waits_for_room) endpoint.Write(peer);
  while (out.last_bytes < sizeof(out.last)) {
    const size_t got = out.flow->Read(reinterpret_cast<char*>(&out.last) + out.last_bytes,
                                      sizeof(out.last) - out.last_bytes);
    if (got == 0) break;
    out.last_bytes += got;
  }
  const bool said = out.last_bytes == sizeof(out.last);
  if (!said && !out.flow->ended()) return absl::OkStatus();
  if (std::exchange(out.watched, false)) Watch(EPOLL_CTL_DEL, out.flow->fd(), 0, 0);
  TakeArrived(endpoint);
  const bool comes = said && out.last.id != 0;  // a connection of the peer
  if (comes || endpoint.has_inflow(peer) || endpoint.ended(peer)) return absl::OkStatus();
  return EndOf(endpoint, peer, said ? std::optional(out.last.kind) : std::nullopt, *out.flow);
}

// A connection that ends before its first packet says nothing about the peer: one that leaves may
// have been about to connect.
absl::StatusOr<bool> FarLines::OnIn(Endpoint& endpoint, int peer) {
  In& in = ins_[peer];
  ASSIGN_OR_RETURN(const Endpoint::Seen seen, endpoint.Read(peer));
  in.heard = in.heard || seen.moved;
  const std::optional<PacketKind> last = endpoint.last_packet(peer);
  if (!last.has_value() && (seen.more || !in.flow->ended())) return seen.more;
  if (std::exchange(in.watched, false)) Watch(EPOLL_CTL_DEL, in.flow->fd(), 0, 0);
  if (endpoint.ended(peer)) return false;
  if (in.heard) {
    RETURN_IF_ERROR(EndOf(endpoint, peer, last, *in.flow));
  } else {
    endpoint.SetInFlow(peer, nullptr);
    ins_.erase(peer);
  }
  return false;
}

absl::Status FarLines::EndOf(Endpoint& endpoint, int peer, std::optional<PacketKind> last,
                             const SocketFlow& flow) {
  if (last == PacketKind::kGoodbye) {
    endpoint.EndPeer(peer,
                     absl::UnavailableError(absl::StrCat("rank ", peer, " is gone: it has left")));
    return absl::OkStatus();
  }
  if (last == PacketKind::kGaveUp) return GivenUpError(peer);
  if (!flow.Tampering().empty()) {
    return absl::DataLossError(absl::StrCat("rank ", peer, " is gone: it ", flow.Tampering()));
  }
  return absl::UnavailableError(absl::StrCat("rank ", peer, " is gone: its process has ended"));
}

void FarLines::AwaitRoom(Endpoint& endpoint) {
  for (auto& [peer, out] : outs_) {
    const bool waits = endpoint.wants_to_write(peer) && !out.flow->ended();
    if (!out.watched || waits == out.waits_for_room) continue;
    out.waits_for_room = waits;
    Watch(EPOLL_CTL_MOD, out.flow->fd(), waits ? EPOLLIN | EPOLLOUT : EPOLLIN, OutTag(peer));
  }
}

// On both connections of a peer, since it may have but one of them. In the other direction of those
// that the peer has dialed, the packet says whether there is one of this rank, too.
void FarLines::SayLast(Endpoint& endpoint, PacketKind kind) {
  for (auto& [peer, in] : ins_) {
    const uint64_t has_out = endpoint.has_outflow(peer) ? 1 : 0;
    const PacketHeader header = {kind, 0, 0, 0, has_out, 0};
    in.flow->Write({reinterpret_cast<const char*>(&header), sizeof(header)}, {});
    in.flow->EndWriting();
  }
  for (auto& [peer, out] : outs_) {
    endpoint.SayLast(peer, kind);
    out.flow->EndWriting();
  }
}

}  // namespace hvd::collectives::messages
