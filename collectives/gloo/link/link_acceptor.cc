#include "collectives/gloo/link/link_acceptor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/accept.h"
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
  RETURN_IF_ERROR(acceptor->loop_->Watch(acceptor->listener_.get(), EPOLLIN,
                                         [&self = *acceptor](uint32_t) { self.TakeNext(); }));
  acceptor->thread_ = StartSignalFreeThread([&loop = *acceptor->loop_] { loop.Run(); });
  return acceptor;
}

LinkAcceptor::LinkAcceptor(const GroupInfo& group, absl::Duration patience,
                           std::unique_ptr<EventLoop> loop, Fd listener, std::string address)
    : group_(group),
      patience_(patience),
      loop_(std::move(loop)),
      listener_(std::move(listener)),
      address_(std::move(address)),
      news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

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

// Without a free file descriptor, the pending connection keeps the listener readable. Closing a
// silent stranger frees a descriptor for it. If there is none, accepting pauses, since the loop
// would spin.
void LinkAcceptor::TakeNext() {
  net::Accepted accepted = net::Accept(listener_.get());
  if (accepted.connection.valid()) return Admit(std::move(accepted.connection));
  if (accepted.out_of_files && !ForgetOldestSilent()) PauseListening();
}

void LinkAcceptor::PauseListening() {
  loop_->Change(listener_.get(), 0);
  loop_->After(net::kAcceptPause, [this] { loop_->Change(listener_.get(), EPOLLIN); });
}

void LinkAcceptor::Admit(Fd fd) {
  if (strangers_.size() >= kSpareStrangers + group_.size && !ForgetOldestSilent()) {
    Forget(strangers_.begin());
  }
  const auto stranger = strangers_.emplace(strangers_.end(), std::move(fd), group_);
  const absl::Status watched = loop_->Watch(stranger->opening.fd(), EPOLLIN,
                                            [this, stranger](uint32_t) { Advance(stranger); });
  stranger->expiry = loop_->After(patience_, [this, stranger] { Forget(stranger); });
  if (!watched.ok()) return Forget(stranger);
  // Its first message may have arrived already. Reading it now keeps the stranger from being closed
  // as a silent one.
  Advance(stranger);
}

void LinkAcceptor::Advance(Strangers::iterator stranger) {
  using Progress = LinkOpening::Progress;
  const Progress progress = stranger->opening.Advance();
  if (progress == Progress::kFailed) return Forget(stranger);
  if (progress == Progress::kProved) {
    const int peer = stranger->opening.peer();
    loop_->Forget(stranger->opening.fd());
    loop_->Cancel(stranger->expiry);
    net::Wire wire = stranger->opening.TakeWire();
    strangers_.erase(stranger);
    return Keep(peer, std::move(wire));
  }
  const bool writes = progress == Progress::kWantsToWrite;
  if (writes != stranger->writes) {
    stranger->writes = writes;
    loop_->Change(stranger->opening.fd(), writes ? EPOLLOUT : EPOLLIN);
  }
}

void LinkAcceptor::Forget(Strangers::iterator stranger) {
  {
    // Counted before the connection is closed, so that a peer that sees it close knows that it has
    // been counted.
    absl::MutexLock lock(&mutex_);
    ++refused_;
  }
  loop_->Forget(stranger->opening.fd());
  loop_->Cancel(stranger->expiry);
  strangers_.erase(stranger);
}

bool LinkAcceptor::ForgetOldestSilent() {
  const auto silent = std::find_if(strangers_.begin(), strangers_.end(),
                                   [](const Stranger& s) { return !s.opening.heard(); });
  if (silent == strangers_.end()) return false;
  Forget(silent);
  return true;
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
