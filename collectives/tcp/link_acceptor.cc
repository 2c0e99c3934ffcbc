#include "collectives/tcp/link_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/tcp_socket.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "collectives/peer_handshake.h"
#include "collectives/tcp/link_address.h"

namespace hvd::collectives::tcp {

absl::StatusOr<std::unique_ptr<LinkAcceptor>> LinkAcceptor::Start(const GroupInfo& group,
                                                                  absl::Duration patience) {
  ASSIGN_OR_RETURN(Fd listener, net::ListenOnAnyPort(group.address));
  // Asked of the socket: the kernel has chosen the port.
  ASSIGN_OR_RETURN(std::string address, LinkAddressOf(listener.get()));
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  std::unique_ptr<LinkAcceptor> acceptor(
      new LinkAcceptor(group, patience, std::move(loop), std::move(listener), std::move(address)));
  if (!acceptor->news_.valid()) return absl::ErrnoToStatus(errno, "no eventfd");
  RETURN_IF_ERROR(acceptor->listener_.Begin());
  acceptor->thread_ = StartSignalFreeThread([&loop = *acceptor->loop_] { loop.Run(); });
  return acceptor;
}

LinkAcceptor::LinkAcceptor(const GroupInfo& group, absl::Duration patience,
                           std::unique_ptr<EventLoop> loop, Fd listener, std::string address)
    : group_(group),
      loop_(std::move(loop)),
      address_(std::move(address)),
      news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      listener_(
          *loop_, std::move(listener), group_.tls,
          [this](std::string binding) {
            return MakeAcceptorHandshake(kLinkProtocol, group_, std::move(binding));
          },
          {kSpareStrangers + static_cast<size_t>(group.size), patience},
          [this](net::Wire wire, int peer) { Keep(peer, std::move(wire)); }) {}

LinkAcceptor::~LinkAcceptor() { Stop(); }

void LinkAcceptor::Stop() {
  // Stopped already, or Start has failed before it started the thread: nobody runs the loop.
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
    const absl::Status waited = net::AwaitReady(news_.get(), POLLIN, deadline, cancellation);
    if (absl::IsDeadlineExceeded(waited)) return NotCome(peer);
    RETURN_IF_ERROR(waited);
    // The counter is reset before arrived_ is checked again, so that no arrival is missed: one that
    // comes after the reset makes the descriptor readable again.
    eventfd_t count;
    (void)eventfd_read(news_.get(), &count);
  }
}

absl::Status LinkAcceptor::NotCome(int peer) {
  std::string text = absl::StrCat("no connection in time from rank ", peer);
  const int refused = listener_.refused();
  if (refused > 0) absl::StrAppend(&text, "; unauthenticated connections refused: ", refused);
  return absl::DeadlineExceededError(text);
}

void LinkAcceptor::Drop() {
  absl::MutexLock lock(&mutex_);
  dropped_ = true;
  arrived_.clear();
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

}  // namespace hvd::collectives::tcp
