#include "collectives/gloo/link/link_acceptor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/peer_source.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "collectives/gloo/link/await_descriptor.h"
#include "collectives/gloo/link/link_address.h"

namespace hvd::collectives::gloo::link {

absl::StatusOr<std::unique_ptr<LinkAcceptor>> LinkAcceptor::Start(const GroupInfo& group,
                                                                  absl::Duration patience) {
  ASSIGN_OR_RETURN(Fd listener, ListenForLinks(group.address));
  // Asked of the socket: the kernel has chosen the port.
  ASSIGN_OR_RETURN(std::string address, LinkAddressOf(listener.get()));
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  std::unique_ptr<LinkAcceptor> acceptor(
      new LinkAcceptor(group, patience, std::move(loop), std::move(listener), std::move(address)));
  if (!acceptor->news_.valid()) return absl::ErrnoToStatus(errno, "no eventfd");
  RETURN_IF_ERROR(acceptor->acceptor_.Begin());
  acceptor->thread_ = StartSignalFreeThread([&loop = *acceptor->loop_] { loop.Run(); });
  return acceptor;
}

LinkAcceptor::LinkAcceptor(const GroupInfo& group, absl::Duration patience,
                           std::unique_ptr<EventLoop> loop, Fd listener, std::string address)
    : group_(group),
      patience_(patience),
      loop_(std::move(loop)),
      address_(std::move(address)),
      news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      acceptor_(
          *loop_, std::move(listener), [this](Fd fd) { Admit(std::move(fd)); },
          [this] { return MakeRoom(); }),
      strangers_(kSpareStrangers + static_cast<size_t>(group.size)) {}

LinkAcceptor::~LinkAcceptor() {
  // Start has failed before it started the thread, so nobody runs the loop.
  if (!thread_.joinable()) return;
  loop_->Post([this] { loop_->Stop(); });
  thread_.join();
}

absl::StatusOr<net::Wire> LinkAcceptor::Await(int peer, absl::Time deadline,
                                              const Cancellation* cancellation) {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const auto found = arrived_.find(peer);
      if (found != arrived_.end()) {
        net::Wire wire = std::move(found->second);
        arrived_.erase(found);
        // From now on a second connection in this peer's name is refused, even with a right proof:
        // the caller uses this one.
        handed_over_.insert(peer);
        return wire;
      }
    }
    const absl::Status waited = AwaitDescriptor(news_.get(), POLLIN, deadline, cancellation);
    if (absl::IsDeadlineExceeded(waited)) return NotCome(peer);
    RETURN_IF_ERROR(waited);
    // The counter is reset before arrived_ is checked again, so that no arrival is missed: one that
    // comes after the reset makes the descriptor readable again.
    eventfd_t count;
    (void)eventfd_read(news_.get(), &count);
  }
}

absl::Status LinkAcceptor::NotCome(int peer) {
  absl::MutexLock lock(&mutex_);
  std::string text = absl::StrCat("no connection in time from rank ", peer);
  if (refused_ > 0) absl::StrAppend(&text, "; unauthenticated connections refused: ", refused_);
  return absl::DeadlineExceededError(text);
}

void LinkAcceptor::Drop() {
  absl::MutexLock lock(&mutex_);
  dropped_ = true;
  arrived_.clear();
}

void LinkAcceptor::Admit(Fd fd) {
  const Id id = strangers_.Add(net::PeerSource(fd.get()));
  Stranger& stranger = openings_.try_emplace(id, std::move(fd), group_).first->second;
  stranger.expiry = loop_->After(patience_, [this, id] { Refuse(id); });
  const absl::Status watched =
      loop_->Watch(stranger.opening.fd(), EPOLLIN, [this, id](uint32_t) { Advance(id); });
  if (!watched.ok()) return Refuse(id);
  // Its first message may have arrived already. Reading it now keeps the stranger from being closed
  // as a silent one.
  Advance(id);
}

void LinkAcceptor::Advance(Id id) {
  using Progress = LinkOpening::Progress;
  Stranger& stranger = openings_.at(id);
  const Progress progress = stranger.opening.Advance();
  if (progress == Progress::kFailed) return Refuse(id);
  if (progress == Progress::kProved) {
    Stranger peer = TakeOut(id);
    return Keep(peer.opening.peer(), peer.opening.TakeWire());
  }
  const bool writes = progress == Progress::kWantsToWrite;
  if (writes != stranger.writes) {
    stranger.writes = writes;
    loop_->Change(stranger.opening.fd(), writes ? EPOLLOUT : EPOLLIN);
  }
  strangers_.Reach(id, stranger.opening.stage());
  KeepToTheBound();
}

void LinkAcceptor::KeepToTheBound() {
  while (const std::optional<Id> surplus = strangers_.Surplus()) Refuse(*surplus);
}

bool LinkAcceptor::MakeRoom() {
  const std::optional<Id> gone = strangers_.LeastLikelyMember();
  if (gone.has_value()) Refuse(*gone);
  return gone.has_value();
}

LinkAcceptor::Stranger LinkAcceptor::TakeOut(Id id) {
  const auto found = openings_.find(id);
  loop_->Forget(found->second.opening.fd());
  loop_->Cancel(found->second.expiry);
  Stranger stranger = std::move(found->second);
  openings_.erase(found);
  strangers_.Remove(id);
  return stranger;
}

void LinkAcceptor::Refuse(Id id) {
  {
    // Counted before the connection is closed, so that a peer that sees it close knows that it has
    // been counted.
    absl::MutexLock lock(&mutex_);
    ++refused_;
  }
  TakeOut(id);
}

// A peer whose connection was closed dials again, so its newest connection replaces an older one
// that Await has not returned yet.
void LinkAcceptor::Keep(int peer, net::Wire wire) {
  {
    absl::MutexLock lock(&mutex_);
    if (dropped_ || handed_over_.count(peer) != 0) return;
    arrived_[peer] = std::move(wire);
  }
  (void)eventfd_write(news_.get(), 1);
}

}  // namespace hvd::collectives::gloo::link
