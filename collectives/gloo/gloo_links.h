// Point-to-point messages between ranks over a connected mesh, with deadlines, abort, and fast
// detection of lost peers.
#ifndef COLLECTIVES_GLOO_GLOO_LINKS_H_
#define COLLECTIVES_GLOO_GLOO_LINKS_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>  // NOLINT: one thread that waits in Gloo
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancellation.h"
#include "collectives/gloo/gloo_mesh.h"
#include "gloo/transport/unbound_buffer.h"

namespace hvd::collectives::gloo {

// Owns the mesh. One thread at a time connects and uses the regions; Break() and status() may be
// called from any thread.
//
// Messages between two ranks arrive in the order of sending, and the k-th Send() to a rank matches
// its k-th Receive() from this rank. So no tags are needed as long as all ranks make the same calls
// in the same order.
//
// Failure detection: a watcher thread keeps one pending receive per linked peer, the "sentinel",
// which fails when the connection breaks. So a rank detects every lost peer, not only those that it
// waits for. It also works around a fault of Gloo, which does not complete a receive of which a
// part has arrived when its connection breaks. A rank that leaves sends one last message to the
// sentinels of its peers: a goodbye if it leaves cleanly, else the rank that caused the failure.
// After a failure it then closes its connections, so that its peers break in turn. So a failure
// spreads to all ranks, and each of them can name the rank that caused it, not only the peer whose
// connection was closed.
class GlooLinks {
 public:
  // A part of the caller's memory that messages are sent from and received into. Completions are
  // only counted: the caller awaits as many as it has started; those of one peer complete in order.
  // After the region is destroyed, Gloo no longer accesses the memory.
  class Region {
   public:
    Region(GlooLinks& links, void* data, size_t bytes);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    // Start a message and return at once. The memory must not change until the message was awaited.
    // Errors of both:
    //   - Unavailable: the connection to `peer` is gone.
    //   - Others: those of GlooLinks::status().
    absl::Status Send(int peer, size_t offset, size_t bytes);
    absl::Status Receive(int peer, size_t offset, size_t bytes);

    // Wait for the completion of one message that was started on this region.
    // Errors of both:
    //   - DeadlineExceeded: the deadline passed; names `peer`.
    //   - Unavailable: a connection is gone.
    //   - Others: those of GlooLinks::status().
    absl::Status AwaitSent(int peer, absl::Time deadline);
    absl::Status AwaitReceived(int peer, absl::Time deadline);

   private:
    friend class GlooLinks;
    absl::Status Await(bool sent, int peer, absl::Time deadline);

    GlooLinks& links_;
    std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
  };

  GlooLinks(std::unique_ptr<GlooMesh> mesh, int rank, int size);
  // Sends a goodbye, unless broken.
  ~GlooLinks();

  // Links this rank with those of `peers` with which it is not linked yet. A region may be used
  // with linked peers only. Each of `peers` must make a matching call, with this rank among its
  // peers, before it links further ranks. Ended by `cancellation` or, if that is nullptr, by
  // Break().
  // Errors: those of GlooMesh::Connect, or status().
  absl::Status Connect(absl::Span<const int> peers, absl::Time deadline,
                       const Cancellation* cancellation = nullptr);

  GlooMesh& mesh() { return *mesh_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // OK until the links break, then the reason. An Aborted is never replaced; any other reason is
  // replaced by a later one, which is more precise.
  absl::Status status() const;

  // Makes all current and later waits return status(). Does not block. `cause` is the rank that the
  // last message to the peers names as the cause of the failure.
  // REQUIRES: !why.ok()
  void Break(const absl::Status& why, int cause);

  // Calls `listener` with the reason when the links break, on the thread that breaks them; at once
  // if they are broken. `listener` must not block or call this object. At most one can be set.
  void OnBroken(std::function<void(const absl::Status&)> listener);

 private:
  // The last message of a leaving rank: kGoodbye, or 1 + the rank that caused the failure. `check`
  // is the bitwise complement, so that a partly received message is not taken for a whole one.
  struct LastWord {
    int32_t value = 0;
    int32_t check = 0;
  };
  static constexpr int32_t kGoodbye = -1;

  void Watch();
  // Posts the sentinels of the new connections and adds them to linked_.
  absl::Status Register(const std::vector<int>& peers);
  // Returns when the peers have posted their sentinels, too. A last message can be received only by
  // a posted sentinel.
  absl::Status Greet(const std::vector<int>& peers, absl::Time deadline);
  std::vector<int> LinkedPeers() const;
  // Translates a failure of Gloo: if the links are not broken yet, finds the lost peer and breaks
  // them. Returns status().
  absl::Status Explain(const absl::Status& from_gloo);
  void BreakOverPeers(const absl::Status& waited);
  void SayLastWord(int32_t value);
  void CloseConnections(const std::vector<int>& peers);
  // The peer's last message; 0: none has arrived.
  int32_t LastWordOf(int peer) const;
  // The ranks whose connection is broken although they sent no last message. Sets `why` if their
  // data failed an integrity check.
  std::vector<int> FindLost(std::string& why);

  const std::unique_ptr<GlooMesh> mesh_;
  const int rank_;
  const int size_;
  std::vector<bool> is_linked_;  // by rank; used by the connecting thread only
  Cancellation broken_;

  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> linked_ ABSL_GUARDED_BY(mutex_);
  std::vector<Region*> regions_ ABSL_GUARDED_BY(mutex_);
  int cause_ ABSL_GUARDED_BY(mutex_) = -1;
  std::function<void(const absl::Status&)> listener_ ABSL_GUARDED_BY(mutex_);

  std::vector<LastWord> last_words_;  // by rank; written by Gloo's thread
  std::unique_ptr<::gloo::transport::UnboundBuffer> sentinel_;
  std::thread watcher_;
};

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_LINKS_H_
