// Where a gRPC server gets its connections from.
#ifndef RENDEZVOUS_SERVER_GRPC_LISTENER_H_
#define RENDEZVOUS_SERVER_GRPC_LISTENER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/net/acceptor.h"
#include "grpcpp/server_builder.h"

namespace hvd::rendezvous::server {

// Accepts connections in gRPC's stead, which never accepts another one on a port where it once
// could not, for lack of files. Owns its sockets and a thread. Not thread-safe.
class GrpcListener {
 public:
  using Door = grpc::experimental::ExternalConnectionAcceptor;

  // Connections that come wait for Begin.
  //   InvalidArgument: not a numeric "address:port".   Unavailable: an address can't be listened
  //   on; says which and why.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Open(const std::vector<std::string>& listen);
  // The server is told of no connection any more.
  ~GrpcListener();

  // With their real ports, in the order asked for.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // From now on connections go to `door`, whose server has started and stays up for longer than
  // this. Once.
  void Begin(std::unique_ptr<Door> door);

 private:
  explicit GrpcListener(std::unique_ptr<EventLoop> loop) : loop_(std::move(loop)) {}
  void Pass(Fd connection);

  const std::unique_ptr<EventLoop> loop_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;  // the thread's, as the next
  std::unique_ptr<Door> door_;
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_GRPC_LISTENER_H_
