// The connections to one peer, as one sequence of messages in each direction.
#ifndef COLLECTIVES_TCP_PEER_LINK_H_
#define COLLECTIVES_TCP_PEER_LINK_H_

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/net/wire.h"
#include "collectives/tcp/connection_count.h"
#include "collectives/tcp/socket_link.h"

namespace hvd::collectives::tcp {

// Small messages use the first connection. Large ones are split evenly over all connections, or use
// the first one only, as set by SplitLarge: both ends must switch between the same two messages.
// Completions are counted in the order of the messages, whichever connection is faster.
//
// Not thread-safe. See SocketLink for what is not described here.
class PeerLink {
 public:
  // Messages of `large_bytes` or more are large. `clock` must outlive the link.
  PeerLink(net::Wire first, size_t large_bytes, Clock& clock = Clock::Real());

  void AddConnections(std::vector<net::Wire> further);
  size_t connections() const { return sockets_.size(); }
  void SplitLarge(bool split) { splits_ = split; }

  // kGaveUp if a connection has ended so, else the first of kLost, kMalformed and kGoodbye with
  // which one has ended. Further connections count while large messages are split: a network may
  // drop those that nothing is sent on.
  SocketLink::End end() const;
  // Whether a connection that counts was lost, even if another one ended in kGaveUp.
  bool HasLost() const;
  // Whether all further connections are open, so that they can be used again.
  bool IsWhole() const;
  int cause() const;
  bool IsSilent();
  uint64_t Unacknowledged() const;
  std::string Tampering() const;

  void Send(const char* data, size_t bytes, size_t* completed);
  void Receive(char* data, size_t bytes, size_t* completed);
  bool Advance();
  bool wants_to_move() const;
  bool is_stuck() const;

  // Appends what to poll for.
  void AppendPolled(std::vector<pollfd>& polled) const;
  std::vector<int> fds() const;
  // Reads the connection `fd` to its end. REQUIRES: the peer has hung up on it.
  void ReadToEnd(int fd);
  // The same for each connection on which the peer has hung up.
  void ReadHangUps();

  void Abandon();
  void SayGoodbye();
  void SayGaveUp(int cause);
  void ResetIfBlocked();

  // The bytes of the large messages that were started, in both directions. Between two operations
  // it is the same at both ends.
  uint64_t large_bytes_started() const { return large_bytes_started_; }
  // The pace since the last call.
  SendPace TakePace();

 private:
  // A message that is counted once all its parts have moved.
  struct Message {
    size_t bytes;
    size_t parts;
    size_t* completed;
    size_t moved_parts = 0;
  };
  using Messages = std::deque<Message>;  // whose references stay valid

  bool IsLarge(size_t bytes) const { return bytes >= large_bytes_; }
  // Calls move(socket, offset, bytes) for each part of a message.
  void ForEachPart(size_t bytes, absl::FunctionRef<void(SocketLink&, size_t, size_t)> move);
  size_t PartsOf(size_t bytes) const;
  // Among the connections that count for the link's end.
  bool AnyInUse(absl::FunctionRef<bool(const SocketLink&)> is_so) const;
  void Settle();
  void MeasureMoving();

  const size_t large_bytes_;
  Clock& clock_;
  std::deque<SocketLink> sockets_;  // the first connection, and further ones
  bool splits_ = false;
  // Those that were not counted yet: large messages, and small ones behind them.
  Messages sent_, received_;
  uint64_t large_bytes_started_ = 0;
  SendPace pace_;
  bool is_held_up_ = false;             // the kernel has not taken all of the large messages
  std::optional<absl::Time> moved_at_;  // the last step, while large messages are under way
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_PEER_LINK_H_
