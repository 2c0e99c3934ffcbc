// The listener that accepts connections on behalf of a gRPC server.
#ifndef RENDEZVOUS_SERVER_GRPC_LISTENER_H_
#define RENDEZVOUS_SERVER_GRPC_LISTENER_H_

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/acceptor.h"
#include "base/net/source_rate.h"
#include "base/net/strangers.h"
#include "grpcpp/server_builder.h"
#include "rendezvous/transport/peer_address.h"

namespace hvd::rendezvous::server {

// Replaces gRPC's own listener, which stops accepting on a port after one failure for lack of
// descriptors, and which lets unauthenticated peers take all of them.
//
// A connection is passed to gRPC with its first bytes, since the client speaks first. Until a call
// with a valid token has come on it, its peer is a stranger. There are at most 1024 silent ones and
// 1024 of gRPC, and both use at most three eighths of the descriptors that this process may open.
// Beyond that, and whenever descriptors run out, net::Strangers decides which one is disconnected.
// So strangers cannot lock others out, whether they are silent or have begun a handshake; a client
// that is disconnected connects again. Nor can they keep the processor busy: of the handshakes that
// one source begins without a proof, 400 at once are passed on, then 200 a second
// (net::SourceRate); others are closed.
//
// A connection on which a token was accepted is never closed for a stranger. If seven eighths
// of the descriptors are in use, the jobs that have more connections than they need lose the
// surplus, so that a member of one job can't take the descriptors of the others and of this
// process. If there is no surplus, new connections are closed. Owns its sockets and a thread.
// Not thread-safe, except for OnAuthenticated.
class GrpcListener {
 public:
  using ExternalAcceptor = grpc::experimental::ExternalConnectionAcceptor;

  // Starts listening. Connections wait until Begin.
  // Errors:
  //   - InvalidArgument: not a numeric "address:port".
  //   - Unavailable: an address can't be listened on; says which and why.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Open(const std::vector<std::string>& listen,
                                                            Clock& clock = Clock::Real());
  ~GrpcListener() { End(); }

  // The addresses listened on, with their real ports, in the order of Open's argument.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Returns how many connections the job with this token needs at most. Called on the thread.
  using Needed = std::function<size_t(const std::string& token)>;

  // Passes connections to `acceptor` from now on. Its server must have started, and must run until
  // End. `handshake_time` is the server's limit for handshakes; also a peer that has shown its
  // certificate must call with a token in that time. Call once.
  void Begin(std::unique_ptr<ExternalAcceptor> acceptor, absl::Duration handshake_time,
             Needed needed);

  // The peer of a call, as gRPC names it (ServerContext::peer), has this valid token. Thread-safe.
  void OnAuthenticated(const std::string& peer, const std::string& token);

  // Stops accepting: the gRPC server gets no further connection.
  void End();

 private:
  using Id = net::Strangers::Id;
  // Of one source. A handshake takes about a millisecond of one core.
  static constexpr double kHandshakesPerSecond = 200;
  static constexpr double kHandshakesAtOnce = 400;
  struct Silent {
    Fd connection;
    EventLoop::TimerId timeout;
  };
  // A stranger's connection that gRPC owns.
  struct Passed {
    Fd copy;  // to shut it down with: gRPC may close its own descriptor at any time
    transport::PeerAddress peer;
    std::string source;
    EventLoop::TimerId timeout;
  };
  // A member's connection, which gRPC owns and may close at any time.
  struct Member {
    int descriptor = -1;
    transport::PeerAddress peer;
  };
  using Members = absl::flat_hash_map<transport::PeerAddress, std::string>;
  // The strangers' connections from one address. There may be several: to different addresses of
  // ours, or a new one beside one whose end was not noticed yet. Calls don't say which of them they
  // came on, so all count as authenticated with the first one.
  struct Peer {
    std::vector<Id> connections;  // used by the thread only
    bool authenticated = false;
  };

  GrpcListener(std::unique_ptr<EventLoop> loop, int max_files, size_t max_strangers, Clock& clock)
      : clock_(clock), max_files_(max_files), loop_(std::move(loop)), strangers_(max_strangers) {}
  void OnConnection(Fd connection);
  Fd RemoveSilent(Id silent);
  void EnforceLimit();
  bool MakeRoom();
  bool DisconnectSurplusMembers();
  bool IsShort(int descriptor) const { return descriptor >= max_files_; }
  void DisconnectStranger(Id stranger);
  void Pass(Fd connection);
  bool Track(int connection);
  void Untrack(Id stranger);
  void UntrackAllOf(const transport::PeerAddress& peer);
  std::map<std::string, std::vector<Member>> ConnectedMembers();
  bool DisconnectMember(const Member& member);

  Clock& clock_;
  const int max_files_;
  const std::unique_ptr<EventLoop> loop_;
  std::vector<std::string> addresses_;
  // Used by the thread only, like the five below.
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;
  net::Strangers strangers_;
  int highest_ = 0;  // of the descriptors of connections
  net::SourceRate handshakes_{kHandshakesPerSecond, kHandshakesAtOnce};
  std::map<Id, Silent> silent_;  // of strangers_
  std::map<Id, Passed> passed_;  // of strangers_
  absl::Mutex mutex_;
  absl::flat_hash_map<transport::PeerAddress, Peer> by_peer_ ABSL_GUARDED_BY(mutex_);
  Members members_ ABSL_GUARDED_BY(mutex_);  // the token of each, also of some that have gone
  size_t next_cleaning_ ABSL_GUARDED_BY(mutex_) = 1024;
  Fd spare_;  // for DisconnectMember, when no descriptor is left
  std::mt19937 random_{std::random_device{}()};
  std::unique_ptr<ExternalAcceptor> external_acceptor_;
  Needed needed_;
  absl::Duration handshake_time_;
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_GRPC_LISTENER_H_
