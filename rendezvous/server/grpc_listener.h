// The listener that accepts connections on behalf of a gRPC server.
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

// Replaces gRPC's own listener, which stops accepting on a port after one failure for lack of
// descriptors. A connection is passed to gRPC with its first bytes, since the client speaks first.
// Until then it counts as silent. Silent connections use at most half of the descriptors that this
// process may open: the oldest one is closed at that limit, and whenever descriptors run out. So
// unauthenticated peers that connect and send nothing cannot lock others out. Owns its sockets and
// a thread. Not thread-safe.
class GrpcListener {
 public:
  using Door = grpc::experimental::ExternalConnectionAcceptor;

  // Starts listening. Connections wait until Begin.
  // Errors:
  //   - InvalidArgument: not a numeric "address:port".
  //   - Unavailable: an address can't be listened on; says which and why.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Open(const std::vector<std::string>& listen);
  // Stops accepting; the gRPC server gets no further connection.
  ~GrpcListener();

  // The addresses listened on, with their real ports, in the order of Open's argument.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Passes connections to `door` from now on. Its server must have started, and must outlive this.
  // Call once.
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
  // Used by the thread only, like `silent_`.
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;
  Silent silent_;  // oldest first
  std::unique_ptr<Door> door_;
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_GRPC_LISTENER_H_
