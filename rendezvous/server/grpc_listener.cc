#include "rendezvous/server/grpc_listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/listen_address.h"
#include "base/net/peer_source.h"
#include "base/status_macros.h"
#include "rendezvous/transport/connection.h"

namespace hvd::rendezvous::server {
namespace {

// Bounds gRPC's memory, about 100 KB for each.
constexpr size_t kMaxPerStage = 1024;

int FileLimit() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  return static_cast<int>(std::min<rlim_t>(files.rlim_cur, INT_MAX));
}

// Three eighths of the descriptors: silent strangers have one each, those of gRPC two. The others
// are left for authenticated connections and files.
size_t MaxStrangers(int files) { return std::min(static_cast<size_t>(files / 8), kMaxPerStage); }

// An eighth is left for the process that embeds the server. The kernel gives out the lowest number,
// so a number tells how many are in use.
int MaxFiles(int files) { return files - files / 8; }

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Open(
    const std::vector<std::string>& listen, Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  const int files = FileLimit();
  std::unique_ptr<GrpcListener> listener(
      new GrpcListener(std::move(loop), MaxFiles(files), MaxStrangers(files), clock));
  GrpcListener* const self = listener.get();
  for (const std::string& text : listen) {
    ASSIGN_OR_RETURN(const net::ListenAddress address, net::ParseListenAddress(text));
    ASSIGN_OR_RETURN(Fd socket, net::ListenOn(address));
    listener->addresses_.push_back(address.WithPort(net::BoundPort(socket.get())));
    listener->acceptors_.push_back(std::make_unique<net::Acceptor>(
        *listener->loop_, std::move(socket),
        [self](Fd connection) { self->OnConnection(std::move(connection)); },
        [self] { return self->MakeRoom(); }));
    RETURN_IF_ERROR(listener->acceptors_.back()->Begin());
  }
  return listener;
}

void GrpcListener::Begin(std::unique_ptr<ExternalAcceptor> acceptor, absl::Duration handshake_time,
                         Needed needed) {
  needed_ = std::move(needed);
  spare_.reset(eventfd(0, EFD_CLOEXEC));
  external_acceptor_ = std::move(acceptor);
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
  external_acceptor_.reset();
}

void GrpcListener::OnConnection(Fd connection) {
  highest_ = std::max(highest_, connection.get());
  if (IsShort(connection.get()) && !MakeRoom()) return;
  // If the first bytes have arrived already, the connection is not silent.
  // Peeked, since gRPC must still read the byte. The socket is non-blocking (net::Accept). An error
  // or the end of the stream is left to the watch below, which then fires at once.
  char first = 0;
  if (recv(connection.get(), &first, 1, MSG_PEEK) > 0) return Pass(std::move(connection));
  const int number = connection.get();
  const Id id = strangers_.Add(net::PeerSource(number));
  const EventLoop::TimerId timeout =
      loop_->After(handshake_time_, [this, id] { DisconnectStranger(id); });
  silent_.emplace(id, Silent{std::move(connection), timeout});
  const absl::Status watched =
      loop_->Watch(number, EPOLLIN, [this, id](uint32_t) { Pass(RemoveSilent(id)); });
  if (!watched.ok()) return DisconnectStranger(id);
  EnforceLimit();
}

Fd GrpcListener::RemoveSilent(Id silent) {
  const auto found = silent_.find(silent);
  Fd connection = std::move(found->second.connection);
  // Before gRPC gets the descriptor, or it is closed: the loop must not watch a number that no
  // longer belongs to it.
  loop_->Forget(connection.get());
  loop_->Cancel(found->second.timeout);
  silent_.erase(found);
  strangers_.Remove(silent);
  return connection;
}

void GrpcListener::EnforceLimit() {
  while (const std::optional<Id> surplus = strangers_.Surplus()) DisconnectStranger(*surplus);
}

bool GrpcListener::MakeRoom() {
  const std::optional<Id> gone = strangers_.LeastLikelyMember();
  if (gone.has_value()) DisconnectStranger(*gone);
  return gone.has_value() || DisconnectSurplusMembers();
}

// Chance decides which of a job's connections go: all of a member that opens ever new ones, in
// time.
bool GrpcListener::DisconnectSurplusMembers() {
  bool any = false;
  for (auto& [token, members] : ConnectedMembers()) {
    const size_t needed = needed_(token);
    if (members.size() <= needed) continue;
    std::shuffle(members.begin(), members.end(), random_);
    members.resize(members.size() - needed);
    for (const Member& member : members) any |= DisconnectMember(member);
  }
  return any;
}

// Returns whether the descriptor still was that connection. It is duplicated first: gRPC may close
// its own at any time, and the number may be another file's then.
bool GrpcListener::DisconnectMember(const Member& member) {
  spare_.reset();
  Fd own(fcntl(member.descriptor, F_DUPFD_CLOEXEC, 0));
  const auto peer = own.valid() ? transport::PeerOfSocket(own.get()) : std::nullopt;
  const bool is_same = peer.has_value() && *peer == member.peer;
  if (is_same) shutdown(own.get(), SHUT_RDWR);
  own.reset();
  spare_.reset(eventfd(0, EFD_CLOEXEC));
  // gRPC closes it later; until then it must not count again.
  absl::MutexLock lock(&mutex_);
  if (is_same) members_.erase(member.peer);
  return is_same;
}

// The connections with an accepted token, by token; forgets those that have ended.
std::map<std::string, std::vector<GrpcListener::Member>> GrpcListener::ConnectedMembers() {
  std::map<std::string, std::vector<Member>> connected;
  Members alive;
  absl::MutexLock lock(&mutex_);
  // Not /proc/self/fd: there may be no descriptor left to open it with.
  for (int descriptor = 0; descriptor <= highest_ && alive.size() < members_.size(); ++descriptor) {
    const std::optional<transport::PeerAddress> peer = transport::PeerOfSocket(descriptor);
    const auto member = peer.has_value() ? members_.find(*peer) : members_.end();
    if (member == members_.end()) continue;
    connected[member->second].push_back({descriptor, *peer});
    alive.insert(*member);
  }
  members_ = std::move(alive);
  next_cleaning_ = std::max<size_t>(1024, 2 * members_.size());
  return connected;
}

// On a connection whose token was accepted meanwhile it only ends being a stranger's.
void GrpcListener::DisconnectStranger(Id stranger) {
  if (silent_.count(stranger) > 0) {
    RemoveSilent(stranger);
    return;
  }
  {
    // Whoever has the lock first decides: a token that was accepted before keeps the connection.
    absl::MutexLock lock(&mutex_);
    const Passed& passed = passed_.at(stranger);
    // gRPC sees the end of the stream, and closes its descriptor.
    if (!by_peer_.at(passed.peer).authenticated) shutdown(passed.copy.get(), SHUT_RDWR);
  }
  Untrack(stranger);
}

// Passes the connection to gRPC, with the socket options that gRPC's own listener would set.
void GrpcListener::Pass(Fd connection) {
  const int at_once = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
  setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &transport::kHostSilenceMs,
             sizeof(transport::kHostSilenceMs));
  if (!Track(connection.get())) return;
  ExternalAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  external_acceptor_->HandleNewConnection(&parameters);
}

// Returns false if the connection must be closed.
bool GrpcListener::Track(int connection) {
  const std::optional<transport::PeerAddress> peer = transport::PeerOfSocket(connection);
  if (!peer.has_value()) return false;
  const std::string source = net::PeerSource(connection);
  if (!handshakes_.Take(source, clock_.Now())) return false;
  Fd copy(fcntl(connection, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid() && MakeRoom()) copy.reset(fcntl(connection, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return false;
  const int number = copy.get();
  const Id id = strangers_.Add(source);
  strangers_.Reach(id, net::Strangers::Stage::kHeard);
  // A client connects in order to call. The certificates are those of all jobs, so who calls with
  // no token belongs to no job that could be charged with the connection.
  const EventLoop::TimerId timeout =
      loop_->After(handshake_time_, [this, id] { DisconnectStranger(id); });
  passed_.emplace(id, Passed{std::move(copy), *peer, source, timeout});
  {
    absl::MutexLock lock(&mutex_);
    by_peer_[*peer].connections.push_back(id);
  }
  EnforceLimit();
  // The end of the stream: the peer has hung up, or gRPC, which shuts down what it closes.
  const absl::Status watched =
      loop_->Watch(number, EPOLLRDHUP, [this, id](uint32_t) { Untrack(id); });
  if (watched.ok()) return true;
  Untrack(id);
  return false;
}

void GrpcListener::Untrack(Id stranger) {
  const auto found = passed_.find(stranger);
  loop_->Cancel(found->second.timeout);
  loop_->Forget(found->second.copy.get());
  {
    absl::MutexLock lock(&mutex_);
    const auto peer = by_peer_.find(found->second.peer);
    if (peer->second.authenticated) handshakes_.GiveBack(found->second.source);
    std::vector<Id>& connections = peer->second.connections;
    connections.erase(std::find(connections.begin(), connections.end(), stranger));
    if (connections.empty()) by_peer_.erase(peer);
  }
  passed_.erase(found);
  strangers_.Remove(stranger);
}

void GrpcListener::UntrackAllOf(const transport::PeerAddress& peer) {
  std::vector<Id> connections;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = by_peer_.find(peer);
    if (found != by_peer_.end()) connections = found->second.connections;
  }
  for (const Id stranger : connections) Untrack(stranger);
}

void GrpcListener::OnAuthenticated(const std::string& peer, const std::string& token) {
  const std::optional<transport::PeerAddress> address = transport::PeerOfCall(peer);
  if (!address.has_value()) return;
  bool too_many = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = by_peer_.find(*address);
    if (found == by_peer_.end() || std::exchange(found->second.authenticated, true)) return;
    members_[*address] = token;
    too_many = members_.size() >= next_cleaning_;
  }
  loop_->Post([this, address, too_many] {
    UntrackAllOf(*address);
    if (too_many) DisconnectSurplusMembers();
  });
}

}  // namespace hvd::rendezvous::server
