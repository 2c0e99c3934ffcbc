// The sender of commit copies: serves the newest commit of this host's workers to the agent of
// another host.
#ifndef AGENT_COPIES_COMMIT_SOURCE_H_
#define AGENT_COPIES_COMMIT_SOURCE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "agent/copies/channel.h"
#include "base/cancellation.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/peer/peer_listener.h"
#include "worker_runtime/commit_store/arena_view.h"

namespace hvd::agent::copies {

// Serves one keeper at a time, on a separate thread. While the present keeper waits for a new
// commit, another keeper that connects replaces it. A second thread accepts connections and
// authenticates their peers, many at a time, so that strangers that connect and prove nothing hold
// nobody up. Thread-safe.
class CommitSource {
 public:
  // Reserves a port at `address`; connections are answered after Begin. `bytes_per_second` limits
  // the rate of sending.
  // Errors: those of net::ReserveAnyPort.
  static absl::StatusOr<std::unique_ptr<CommitSource>> Open(const std::string& address, Trust trust,
                                                            size_t bytes_per_second);
  ~CommitSource();

  // "address:port".
  const std::string& address() const { return address_; }

  // Starts to answer keepers of this job. Call it once.
  // Errors:
  //   - Unavailable: it can't listen.
  //   - ResourceExhausted: too many open files.
  absl::Status Begin(const std::string& job);

  // Adds the commits in `arena`, a memfd, to those that are served. Borrowed only for the call.
  // Repeated offers of one arena have no effect.
  void Offer(int arena);

 private:
  using ArenaView = worker_runtime::commit_store::ArenaView;

  CommitSource(Fd listener, std::string address, Trust trust, size_t bytes_per_second);
  void Welcome(net::Wire keeper);
  void Serve();
  // The next keeper; nullptr when this source ends.
  std::unique_ptr<Channel> AwaitKeeper();
  absl::Status Answer(Channel& channel);
  absl::Status AwaitRequest(Channel& channel);
  absl::Status SendNewest(Channel& channel, uint64_t known);
  // The view of the arena with the newest commit, if that is newer than `known`; else nullptr.
  ArenaView* FindNewer(uint64_t known, ArenaView::Commit* newest);
  bool SomebodyWaits();

  Fd listener_;  // until Begin
  const std::string address_;
  const Trust trust_;
  const size_t bytes_per_second_;
  std::string job_;
  Cancellation ending_;
  // From Begin on; used by the accepting thread only.
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<net::peer::PeerListener> keepers_;
  absl::Mutex mutex_;
  // Keyed by the descriptor's number, which is unique: the agent keeps all arenas open.
  std::map<int, std::unique_ptr<ArenaView>> arenas_ ABSL_GUARDED_BY(mutex_);
  // The keeper that was authenticated last, until it is served. A later one replaces it.
  std::unique_ptr<Channel> next_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread accepting_;
  std::thread serving_;
};

}  // namespace hvd::agent::copies

#endif  // AGENT_COPIES_COMMIT_SOURCE_H_
