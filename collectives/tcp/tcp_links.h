// The links between the ranks of a group over TCP, with or without TLS.
#ifndef COLLECTIVES_TCP_TCP_LINKS_H_
#define COLLECTIVES_TCP_TCP_LINKS_H_

#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "collectives/links/links.h"
#include "collectives/tcp/connection_count.h"
#include "collectives/tcp/connection_review.h"
#include "collectives/tcp/peer_link.h"
#include "collectives/tcp/tcp_mesh.h"

namespace hvd::collectives::tcp {

// The thread that waits for a message moves all messages: it polls the sockets for some
// microseconds and then sleeps until one of them is ready. So a message costs no change of threads,
// and an idle rank costs nothing. Between operations the kernel's buffers hold what peers send.
//
// The port's thread waits for hang-ups only. It then reads the peer's last message, and breaks the
// links if the peer has failed.
//
// Between hosts, large messages may be split over several connections (ConnectionReview).
class TcpLinks : public links::Links {
 public:
  explicit TcpLinks(std::unique_ptr<TcpMesh> mesh, const SplitRule& rule = {});
  ~TcpLinks() override;

  absl::string_view name() const override { return "tcp"; }
  std::unique_ptr<links::Region> MakeRegion(void* data, size_t bytes) override;
  absl::Status Connect(absl::Span<const int> peers, absl::Duration timeout,
                       const Cancellation* cancellation) override;

  TcpMesh& mesh() { return *mesh_; }

  // Of the connections to a peer, for ConnectionReview; see PeerLink.
  uint64_t LargeBytesStarted(int peer);
  SendPace TakePace(int peer);
  size_t ConnectionsTo(int peer);
  bool IsWhole(int peer);
  void SplitLarge(int peer, bool split);
  // Errors: status().
  absl::Status AddConnections(int peer, std::vector<net::Wire> further);

 private:
  friend class TcpRegion;
  // Why the links must break.
  struct Failure {
    absl::Status why;  // OK: there is no failure
    int cause = -1;
  };

  std::optional<int> FindUnreached() override;
  void EndWaits(int cause) override;

  absl::Status Register(const std::vector<int>& peers, std::vector<net::Wire> wires);
  void SetBusy(int peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(io_mutex_);
  // Moves messages of all busy links. Returns whether anything has moved.
  bool Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(io_mutex_);
  // One step of a wait. Returns whether `completed` exceeds `awaited`. Sets `moved`.
  bool AdvanceUntil(const size_t& completed, size_t awaited, bool* moved, Failure* failure);
  // Waits until `completed` exceeds `awaited`. Errors: those of links::Region.
  absl::Status Await(const size_t& completed, size_t awaited, absl::Duration timeout);
  // Returns when AdvanceUntil may have something to do, or false after `most`.
  bool Sleep(const size_t& completed, size_t awaited, absl::Duration most);
  // Whether this rank's kernel has sent something to a peer's since the last call.
  bool HasDrained();
  // Forgets all messages.
  void Abandon();

  // What the ends of links mean.
  Failure FindFailure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(io_mutex_);
  Failure FindLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(io_mutex_);
  // For the end of an error; empty: none was seen.
  std::string TamperingWith(int peer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(io_mutex_);
  void ReadHangUps() ABSL_EXCLUSIVE_LOCKS_REQUIRED(io_mutex_);

  // On the port's thread.
  void WatchForHangUp(int peer, int fd);
  void OnHangUp(int peer, int fd);
  void SayGaveUp(int cause);
  void ResetBlocked();

  const std::unique_ptr<TcpMesh> mesh_;
  const SplitRule rule_;
  const Fd wake_;               // an eventfd, readable once the links are broken
  std::atomic<int> cause_{-1};  // of the failure; valid once they are broken

  absl::Mutex io_mutex_;
  std::vector<std::unique_ptr<PeerLink>> links_ ABSL_GUARDED_BY(io_mutex_);  // by rank
  std::vector<int> busy_ ABSL_GUARDED_BY(io_mutex_);        // those with messages, and maybe others
  std::vector<bool> is_busy_ ABSL_GUARDED_BY(io_mutex_);    // by rank: whether it is in busy_
  bool has_end_ ABSL_GUARDED_BY(io_mutex_) = false;         // a link has ended
  uint64_t unacknowledged_ ABSL_GUARDED_BY(io_mutex_) = 0;  // at the last look

  // Used by the connecting thread only.
  std::vector<bool> is_linked_;  // by rank
  ConnectionReview review_;
  std::vector<pollfd> polled_;  // used by the waiting thread only
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_TCP_LINKS_H_
