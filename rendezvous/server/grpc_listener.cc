#include "rendezvous/server/grpc_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <utility>

#include "base/net/listen_address.h"
#include "base/status_macros.h"
#include "rendezvous/transport/connection.h"

namespace hvd::rendezvous::server {
namespace {

size_t MostSilent() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  // The other half is left for authenticated connections and files.
  return static_cast<size_t>(files.rlim_cur / 2);
}

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

GrpcListener::~GrpcListener() {
  if (!thread_.joinable()) return;
  loop_->Post([this] { loop_->Stop(); });
  thread_.join();
}

void GrpcListener::Begin(std::unique_ptr<Door> door) {
  door_ = std::move(door);
  thread_ = std::thread([this] { loop_->Run(); });
}

void GrpcListener::Take(Fd connection) {
  // If the first bytes have arrived already, the connection is not silent.
  // Peeked, since gRPC must still read the byte. The socket is non-blocking (net::Accept). An error
  // or the end of the stream is left to the watch below, which then fires at once.
  char first = 0;
  if (recv(connection.get(), &first, 1, MSG_PEEK) > 0) return Pass(std::move(connection));
  // The oldest silent connection is the least likely one to be a client in the middle of its
  // handshake.
  if (silent_.size() >= MostSilent()) CloseOldest();
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
  if (silent_.empty()) return false;
  TakeOut(silent_.begin());
  return true;
}

// Passes the connection to gRPC, with the socket options that gRPC's own listener would set.
void GrpcListener::Pass(Fd connection) {
  const int at_once = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
  setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &transport::kHostSilenceMs,
             sizeof(transport::kHostSilenceMs));
  Door::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  door_->HandleNewConnection(&parameters);
}

}  // namespace hvd::rendezvous::server
