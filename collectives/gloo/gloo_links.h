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
// Between two ranks messages arrive in the order of sending, and the k-th Send() to a rank matches
// its k-th Receive() from here. So no tags are needed as long as all ranks make the same calls in
// the same order.
//
// A watcher thread holds one never-answered receive per linked peer ("sentinel"). Through it a rank
// learns of every lost peer, not only of those it waits for. It also avoids a fault of Gloo: a
// receive that has begun is not notified when its connection breaks. A rank that leaves answers the
// sentinels first: with a goodbye if it leaves cleanly, else with the rank that is the cause. A
// broken rank then closes all its connections, so that the news spreads from peer to peer, and
// every rank can name the cause and not just the first rank that closed.
class GlooLinks {
 public:
  // A part of the caller's memory for messages. Completions are counted, not named: the caller
  // awaits as many as it started; those of one peer come in order. After the region is destroyed,
  // Gloo no longer accesses the memory.
  class Region {
   public:
    Region(GlooLinks& links, void* data, size_t bytes);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    // Start a message and return at once. The memory must not change until the message was awaited.
    // Errors:
    //   - Unavailable: the connection to `peer` is gone.
    //   - Others: those of GlooLinks::status().
    absl::Status Send(int peer, size_t offset, size_t bytes);
    absl::Status Receive(int peer, size_t offset, size_t bytes);

    // Wait for one message started here; the error names `peer` if it does not come.
    // Errors:
    //   - DeadlineExceeded: the deadline passed.
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
  // with linked peers only. All of `peers` must call it, with this rank among their peers, before
  // they call it for others. Without `cancellation`, Break() ends it.
  // Errors: those of GlooMesh::Connect, or status().
  absl::Status Connect(absl::Span<const int> peers, absl::Time deadline,
                       const Cancellation* cancellation = nullptr);

  GlooMesh& mesh() { return *mesh_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // OK while usable; then the reason why it no longer is. An Aborted stays; any other reason is
  // replaced by a later one, which is more precise.
  absl::Status status() const;

  // Makes every wait, now and later, return status(). Does not block. `cause` is the rank named to
  // the peers. REQUIRES: !why.ok()
  void Break(const absl::Status& why, int cause);

  // Calls `listener` with the reason when this breaks, on the thread where that happens, or at once
  // if it is broken. It must not block nor call this object. Call it once.
  void OnBroken(std::function<void(const absl::Status&)> listener);

 private:
  // The last message of a leaving rank: kGoodbye, or 1 + the rank that is the cause. `check` is its
  // complement, so that a half-received value is not mistaken for a message.
  struct LastWord {
    int32_t value = 0;
    int32_t check = 0;
  };
  static constexpr int32_t kGoodbye = -1;

  void Watch();
  // Takes the new connections into use.
  absl::Status Register(const std::vector<int>& peers);
  // Returns when the peers have taken them into use, too, so that the last message will arrive.
  absl::Status Greet(const std::vector<int>& peers, absl::Time deadline);
  std::vector<int> LinkedPeers() const;
  // The meaning of Gloo's failure: broken over a peer, unless broken already.
  absl::Status Explain(const absl::Status& from_gloo);
  void BreakOverPeers(const absl::Status& waited);
  void SayLastWord(int32_t value);
  void CloseConnections(const std::vector<int>& peers);
  // 0 as long as it has sent nothing.
  int32_t LastWordOf(int peer) const;
  // The ranks whose connection is broken although they sent no last message. Adds further known
  // facts to `why`.
  std::vector<int> FindLost(std::string& why);

  const std::unique_ptr<GlooMesh> mesh_;
  const int rank_;
  const int size_;
  std::vector<bool> is_linked_;  // by rank; of the connecting thread
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
