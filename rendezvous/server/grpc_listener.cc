#include "rendezvous/server/grpc_listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/listen_address.h"
#include "base/status_macros.h"
#include "rendezvous/transport/connection.h"

namespace hvd::rendezvous::server {
namespace {

// Bounds gRPC's memory, about 100 KB for each: more than there are members that are in the
// middle of their handshakes, even in the largest job.
constexpr size_t kMostPassed = 4096;

// A part of the descriptors that this process may open.
size_t Descriptors(int divisor) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  return static_cast<size_t>(files.rlim_cur / divisor);
}

// Each kind of strangers has a quarter of the descriptors; the other half is left for authenticated
// connections and files. So those that have begun a handshake do not drive out clients whose first
// bytes are on the way, and vice versa.
size_t MostSilent() { return Descriptors(4); }
size_t MostPassed() { return std::min(Descriptors(8), kMostPassed); }  // two descriptors for each

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Open(
    const std::vector<std::string>& listen) {
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  std::unique_ptr<GrpcListener> listener(new GrpcListener(std::move(loop)));
  GrpcListener* const self = listener.get();
  for (const std::string& text : listen) {
    ASSIGN_OR_RETURN(const net::ListenAddress address, net::ParseListenAddress(text));
    ASSIGN_OR_RETURN(Fd socket, net::ListenOn(address));
    listener->addresses_.push_back(address.WithPort(net::BoundPort(socket.get())));
    listener->acceptors_.push_back(std::make_unique<net::Acceptor>(
        *listener->loop_, std::move(socket),
        [self](Fd connection) { self->Take(std::move(connection)); },
        [self] { return self->CloseOldest(); }));
    RETURN_IF_ERROR(listener->acceptors_.back()->Begin());
  }
  return listener;
}

void GrpcListener::Begin(std::unique_ptr<Door> door, absl::Duration handshake_time) {
  door_ = std::move(door);
  handshake_time_ = handshake_time;
  thread_ = std::thread([this] { loop_->Run(); });
}

void GrpcListener::End() {
  if (thread_.joinable()) {
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
  }
  acceptors_.clear();
  silent_.clear();
  {
    absl::MutexLock lock(&mutex_);
    by_peer_.clear();
  }
  passed_.clear();
  door_.reset();
}

void GrpcListener::Take(Fd connection) {
  // If the first bytes have arrived already, the connection is not silent.
  // Peeked, since gRPC must still read the byte. The socket is non-blocking (net::Accept). An error
  // or the end of the stream is left to the watch below, which then fires at once.
  char first = 0;
  if (recv(connection.get(), &first, 1, MSG_PEEK) > 0) return Pass(std::move(connection));
  // The oldest silent connection is the least likely one to be a client in the middle of its
  // handshake.
  if (silent_.size() >= MostSilent()) TakeOut(silent_.begin());
  // A list, because its iterators stay valid while other connections come and go: the watch keeps
  // one.
  const auto silent = silent_.insert(silent_.end(), std::move(connection));
  const absl::Status watched =
      loop_->Watch(silent->get(), EPOLLIN, [this, silent](uint32_t) { Pass(TakeOut(silent)); });
  if (!watched.ok()) silent_.erase(silent);
}

Fd GrpcListener::TakeOut(Silent::iterator silent) {
  // Before gRPC gets the descriptor, or it is closed: the loop must not watch a number that no
  // longer belongs to it.
  loop_->Forget(silent->get());
  Fd connection = std::move(*silent);
  silent_.erase(silent);
  return connection;
}

bool GrpcListener::CloseOldest() {
  if (silent_.empty()) return CloseOldestPassed();
  TakeOut(silent_.begin());
  return true;
}

bool GrpcListener::CloseOldestPassed() {
  Strangers::iterator oldest;
  {
    // Whoever has the lock first decides: a token that was accepted before keeps the connection.
    absl::MutexLock lock(&mutex_);
    oldest = std::find_if(passed_.begin(), passed_.end(), [this](const Passed& stranger) {
      mutex_.AssertHeld();
      return !by_peer_.at(stranger.peer).proved;
    });
    if (oldest == passed_.end()) return false;
    // gRPC sees the end of the stream, and closes its descriptor.
    shutdown(oldest->copy.get(), SHUT_RDWR);
  }
  Untrack(oldest);
  return true;
}

// Passes the connection to gRPC, with the socket options that gRPC's own listener would set.
void GrpcListener::Pass(Fd connection) {
  const int at_once = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
  setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &transport::kHostSilenceMs,
             sizeof(transport::kHostSilenceMs));
  if (!Track(connection.get())) return;
  Door::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  door_->HandleNewConnection(&parameters);
}

// Returns false if the connection must be closed.
bool GrpcListener::Track(int connection) {
  const std::optional<transport::PeerAddress> peer = transport::PeerOfSocket(connection);
  if (!peer.has_value()) return false;
  if (passed_.size() >= MostPassed()) CloseOldestPassed();
  Fd copy(fcntl(connection, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid() && CloseOldest()) copy.reset(fcntl(connection, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return false;
  const auto stranger = passed_.insert(passed_.end(), Passed{std::move(copy), *peer, {}});
  // After that time gRPC has hung up on a peer without a certificate. So a connection that lives is
  // no stranger's, even if no call has come.
  stranger->patience = loop_->After(handshake_time_, [this, stranger] { Untrack(stranger); });
  {
    absl::MutexLock lock(&mutex_);
    by_peer_[*peer].connections.push_back(stranger);
  }
  // The end of the stream: the peer has hung up, or gRPC, which shuts down what it closes.
  const absl::Status watched = loop_->Watch(stranger->copy.get(), EPOLLRDHUP,
                                            [this, stranger](uint32_t) { Untrack(stranger); });
  if (watched.ok()) return true;
  Untrack(stranger);
  return false;
}

void GrpcListener::Untrack(Strangers::iterator stranger) {
  loop_->Cancel(stranger->patience);
  loop_->Forget(stranger->copy.get());
  {
    absl::MutexLock lock(&mutex_);
    const auto peer = by_peer_.find(stranger->peer);
    std::vector<Strangers::iterator>& connections = peer->second.connections;
    connections.erase(std::find(connections.begin(), connections.end(), stranger));
    if (connections.empty()) by_peer_.erase(peer);
  }
  passed_.erase(stranger);
}

void GrpcListener::UntrackAllOf(const transport::PeerAddress& peer) {
  std::vector<Strangers::iterator> connections;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = by_peer_.find(peer);
    if (found != by_peer_.end()) connections = found->second.connections;
  }
  for (const Strangers::iterator& stranger : connections) Untrack(stranger);
}

void GrpcListener::Proved(const std::string& peer) {
  const std::optional<transport::PeerAddress> address = transport::PeerOfCall(peer);
  if (!address.has_value()) return;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = by_peer_.find(*address);
    if (found == by_peer_.end() || std::exchange(found->second.proved, true)) return;
  }
  loop_->Post([this, address] { UntrackAllOf(*address); });
}

}  // namespace hvd::rendezvous::server
