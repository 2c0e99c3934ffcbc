// The streams to ranks of other hosts: TCP connections, made when they are needed.
#ifndef COLLECTIVES_MESSAGES_FAR_LINES_H_
#define COLLECTIVES_MESSAGES_FAR_LINES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>  // NOLINT: those that dial
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "base/net/wire.h"
#include "collectives/messages/endpoint.h"
#include "collectives/messages/socket_flow.h"
#include "collectives/peer/peer_port.h"
#include "collectives/types.h"

namespace hvd::collectives::messages {

// Two ranks have a connection for each direction: each of them dials when it first has something to
// send, or waits for something, and so they need not agree on who does. A connection's other
// direction is used for the last packet alone.
//
// Belongs to the thread that holds the messenger's lock.
class FarLines {
 public:
  // `addresses` are those of all ranks' ports (tcp::LinkAddressOf).
  // Errors:
  //   - ResourceExhausted, or another code for the errno: no file descriptor.
  static absl::StatusOr<std::unique_ptr<FarLines>> Make(const GroupInfo& group,
                                                        std::shared_ptr<peer::PeerInbox> inbox,
                                                        std::vector<std::string> addresses,
                                                        absl::Duration dial_timeout);
  // Closes all connections.
  ~FarLines();

  // Connects with `peer`, in a separate thread; a later Move puts the connection into use.
  void Dial(int peer);

  // Reads and writes what is possible; returns whether anything has moved. Ends the peers that have
  // left, and those that can't be reached.
  // Errors:
  //   - Unavailable: a rank is dead or has given up; says which.
  //   - DataLoss: what came from a rank was changed on the way.
  absl::StatusOr<bool> Move(Endpoint& endpoint);
  // Whether Move would do something, even if there is nothing in the sockets.
  bool CanMove() const { return !unread_.empty(); }
  // For poll: readable when Move would do something. Borrowed. To be asked again after each Move.
  int wake_fd() const { return epoll_.get(); }
  bool HasNews() const;

  // Sends the last packet to all peers: kGoodbye or kGaveUp.
  void SayLast(Endpoint& endpoint, PacketKind kind);

 private:
  // A connection that this rank has dialed.
  struct Out {
    std::unique_ptr<SocketFlow> flow;
    bool watched = false;
    bool waits_for_room = false;
    PacketHeader last = {};  // from the peer
    size_t last_bytes = 0;
  };
  struct In {
    std::unique_ptr<SocketFlow> flow;
    bool watched = false;
    bool heard = false;
  };
  struct Dialed {
    int peer;
    absl::StatusOr<net::Wire> wire;
  };

  FarLines(const GroupInfo& group, std::shared_ptr<peer::PeerInbox> inbox,
           std::vector<std::string> addresses, absl::Duration dial_timeout, Fd epoll, Fd news);

  bool Watch(int operation, int fd, uint32_t events, uint64_t tag);
  void EndDial(Dialed dialed) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeDialed(Endpoint& endpoint);
  void TakeArrived(Endpoint& endpoint);
  absl::Status OnOut(Endpoint& endpoint, int peer);
  absl::StatusOr<bool> OnIn(Endpoint& endpoint, int peer);
  absl::Status EndOf(Endpoint& endpoint, int peer, std::optional<PacketKind> last,
                     const SocketFlow& flow);
  void AwaitRoom(Endpoint& endpoint);

  const GroupInfo group_;
  const std::shared_ptr<peer::PeerInbox> inbox_;
  const std::vector<std::string> addresses_;
  const absl::Duration dial_timeout_;
  const Fd epoll_;
  const Fd dial_news_;  // an eventfd: a Dial has ended
  std::map<int, Out> outs_;
  std::map<int, In> ins_;
  std::set<int> unread_;  // there is more in these inflows

  Cancellation stop_dialing_;
  std::vector<std::thread> dialing_;
  absl::Mutex mutex_;
  std::vector<Dialed> dialed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_FAR_LINES_H_
