#include "collectives/peer/peer_port.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/tcp_socket.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"

namespace hvd::collectives::peer {
namespace {

// How much longer those that wait for connections have patience than those that dial.
constexpr absl::Duration kDialersFirst = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<PeerPort>> PeerPort::Open(const std::string& address,
                                                         absl::Duration patience) {
  ASSIGN_OR_RETURN(Fd listener, net::ListenOnAnyPort(address));
  return Adopt(std::move(listener), patience);
}

absl::StatusOr<std::shared_ptr<PeerPort>> PeerPort::Adopt(Fd listener, absl::Duration patience) {
  // Asked of the socket: the kernel has chosen the port.
  ASSIGN_OR_RETURN(const net::SocketAddress address, net::LocalAddressOf(listener.get()));
  ASSIGN_OR_RETURN(const int number, net::PortOf(listener.get()));
  return std::shared_ptr<PeerPort>(new PeerPort(std::move(listener), address, number, patience));
}

PeerPort::~PeerPort() {
  if (!thread_.joinable()) return;
  loop_->Post([this] { loop_->Stop(); });
  thread_.join();
}

bool PeerPort::in_use() const {
  absl::MutexLock lock(&mutex_);
  return !groups_.empty();
}

absl::Status PeerPort::Serve(const GroupInfo& first) {
  ASSIGN_OR_RETURN(loop_, EventLoop::Create());
  listener_ = std::make_unique<net::peer::PeerListener>(
      *loop_, std::move(socket_), first.tls,
      [this](std::string binding) {
        return MakeAcceptorHandshake([this](int id) { return Find(id); }, std::move(binding));
      },
      net::peer::StrangerBounds{kSpareStrangers + static_cast<size_t>(first.size), patience_},
      [this](net::Wire wire, const net::peer::PeerId& peer) { Deliver(std::move(wire), peer); });
  RETURN_IF_ERROR(listener_->Begin());
  thread_ = StartSignalFreeThread([this] { loop_->Run(); });
  return absl::OkStatus();
}

std::shared_ptr<const GroupInfo> PeerPort::Find(int id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = groups_.find(id);
  return found == groups_.end() ? nullptr : found->second.inbox->group_;
}

// A group that has left meanwhile closes the connection.
void PeerPort::Deliver(net::Wire wire, const net::peer::PeerId& peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = groups_.find(peer.group);
  if (found == groups_.end()) return;
  found->second.inbox->Keep(static_cast<Purpose>(peer.purpose), peer.number, std::move(wire));
}

absl::StatusOr<std::shared_ptr<PeerInbox>> PeerInbox::Enter(const GroupInfo& group) {
  PeerPort& port = *group.port;
  std::shared_ptr<PeerInbox> inbox;  // destroyed without the lock, which its destructor takes
  absl::MutexLock lock(&port.mutex_);
  if (const auto found = port.groups_.find(group.id); found != port.groups_.end()) {
    if ((inbox = found->second.owner.lock()) != nullptr) return inbox;
  }
  if (port.loop_ == nullptr) port.served_ = port.Serve(group);
  RETURN_IF_ERROR(port.served_);
  inbox.reset(new PeerInbox(group));
  // Now, not when they are needed: strangers may have taken all descriptors by then.
  for (const Purpose purpose : {Purpose::kTensors, Purpose::kControl}) {
    RETURN_IF_ERROR(inbox->NewsOf(purpose).status());
  }
  port.groups_[group.id] = {inbox.get(), inbox};
  return inbox;
}

PeerInbox::PeerInbox(const GroupInfo& group)
    : port_(group.port), group_([&group] {
        GroupInfo own = group;
        own.port.reset();
        return std::make_shared<const GroupInfo>(std::move(own));
      }()) {}

PeerInbox::~PeerInbox() {
  absl::MutexLock lock(&port_->mutex_);
  const auto found = port_->groups_.find(group_->id);
  // Whoever has entered the group just now has replaced it.
  if (found != port_->groups_.end() && found->second.inbox == this) port_->groups_.erase(found);
}

absl::StatusOr<std::vector<net::Wire>> PeerInbox::Take(Purpose purpose,
                                                       const std::vector<int>& peers,
                                                       absl::Time deadline,
                                                       const Cancellation* cancellation) {
  if (peers.empty()) return std::vector<net::Wire>();
  ASSIGN_OR_RETURN(const int news, NewsOf(purpose));
  for (;;) {
    std::vector<net::Wire> wires = TakeIfAllCame(purpose, peers);
    if (!wires.empty()) return wires;
    const absl::Status waited =
        net::AwaitReady(news, POLLIN, deadline + kDialersFirst, cancellation);
    if (absl::IsDeadlineExceeded(waited)) return NotCome(purpose, peers);
    RETURN_IF_ERROR(waited);
    // The counter is reset before arrivals are checked again, so that none is missed: one that
    // comes after the reset makes the descriptor readable again.
    eventfd_t count;
    (void)eventfd_read(news, &count);
  }
}

absl::StatusOr<int> PeerInbox::NewsOf(Purpose purpose) {
  absl::MutexLock lock(&mutex_);
  Fd& news = BoxOf(WhereNewsOf(purpose)).news;
  if (!news.valid()) news = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news.valid()) return absl::ErrnoToStatus(errno, "no eventfd");
  return news.get();
}

std::vector<net::Wire> PeerInbox::TakeIfAllCame(Purpose purpose, const std::vector<int>& peers) {
  absl::MutexLock lock(&mutex_);
  Box& box = BoxOf(purpose);
  for (const int peer : peers) {
    if (box.arrived.count(peer) == 0) return {};
  }
  std::vector<net::Wire> wires;
  for (const int peer : peers) {
    wires.push_back(std::move(box.arrived.at(peer)));
    box.arrived.erase(peer);
    // From now on a second connection in this peer's name is refused, even with a right proof: the
    // caller uses this one.
    box.handed_over.insert(peer);
  }
  return wires;
}

std::map<int, net::Wire> PeerInbox::TakeArrived(Purpose purpose) {
  absl::MutexLock lock(&mutex_);
  Box& box = BoxOf(purpose);
  eventfd_t count;
  (void)eventfd_read(BoxOf(WhereNewsOf(purpose)).news.get(), &count);
  for (const auto& [peer, wire] : box.arrived) box.handed_over.insert(peer);
  return std::exchange(box.arrived, {});
}

int PeerInbox::news(Purpose purpose) {
  absl::MutexLock lock(&mutex_);
  return BoxOf(WhereNewsOf(purpose)).news.get();
}

absl::Status PeerInbox::NotCome(Purpose purpose, const std::vector<int>& peers) {
  std::vector<int> missing;
  {
    absl::MutexLock lock(&mutex_);
    for (const int peer : peers) {
      if (BoxOf(purpose).arrived.count(peer) == 0) missing.push_back(peer);
    }
  }
  std::string text =
      absl::StrCat("no connection in time from rank ", absl::StrJoin(missing, ", rank "));
  const int refused = port_->listener_->refused();
  if (refused > 0) absl::StrAppend(&text, "; unauthenticated connections refused: ", refused);
  return absl::DeadlineExceededError(text);
}

void PeerInbox::Drop(Purpose purpose) {
  absl::MutexLock lock(&mutex_);
  BoxOf(purpose).dropped = true;
  BoxOf(purpose).arrived.clear();
}

// A peer whose connection was closed dials again, so its newest connection replaces an older one
// that was not taken yet.
void PeerInbox::Keep(Purpose purpose, int peer, net::Wire wire) {
  absl::MutexLock lock(&mutex_);
  Box& box = BoxOf(purpose);
  if (box.dropped || box.handed_over.count(peer) != 0) return;
  box.arrived[peer] = std::move(wire);
  const Fd& news = BoxOf(WhereNewsOf(purpose)).news;
  if (news.valid()) (void)eventfd_write(news.get(), 1);
}

}  // namespace hvd::collectives::peer
