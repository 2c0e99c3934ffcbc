// The listening sockets of a gRPC server.
#ifndef RENDEZVOUS_SERVER_GRPC_LISTENER_H_
#define RENDEZVOUS_SERVER_GRPC_LISTENER_H_

#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/acceptor.h"
#include "grpcpp/server_builder.h"

namespace hvd::rendezvous::server {

// Accepts connections in place of gRPC, which never accepts on a port again after a failure for
// lack of descriptors. A connection is gRPC's from its first bytes on: a client speaks first. Until
// then it is silent. Silent ones have at most half of the descriptors that this process may open;
// the oldest is closed first, there and whenever descriptors run out. So strangers who connect and
// say nothing keep nobody out. Owns its sockets and a thread. Not thread-safe.
class GrpcListener {
 public:
  using Door = grpc::experimental::ExternalConnectionAcceptor;

  // Connections wait for Begin.
  // Errors:
  //   - InvalidArgument: not a numeric "address:port".
  //   - Unavailable: an address can't be listened on; says which and why.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Open(const std::vector<std::string>& listen);
  // The server gets no connection after this.
  ~GrpcListener();

  // With their real ports, in the order asked for.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // From now on connections go to `door`, whose server has started and outlives this. Call once.
  void Begin(std::unique_ptr<Door> door);

 private:
  using Silent = std::list<Fd>;

  explicit GrpcListener(std::unique_ptr<EventLoop> loop) : loop_(std::move(loop)) {}
  void Take(Fd connection);
  Fd TakeOut(Silent::iterator silent);
  bool CloseOldest();
  void Pass(Fd connection);

  const std::unique_ptr<EventLoop> loop_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;  // the thread's, as the next
  Silent silent_;                                          // oldest first
  std::unique_ptr<Door> door_;
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_GRPC_LISTENER_H_
