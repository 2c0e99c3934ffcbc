// Messages between this rank and the others over a connected mesh, with deadlines, abort, and quick news of a lost peer.
#ifndef COLLECTIVES_GLOO_GLOO_LINKS_H_
#define COLLECTIVES_GLOO_GLOO_LINKS_H_

#include <memory>
#include <string>
#include <thread>  // NOLINT: one thread that waits in Gloo
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "collectives/gloo/gloo_mesh.h"
#include "gloo/transport/unbound_buffer.h"

namespace hvd {

// Owns the mesh. One thread at a time uses the regions; Break() and status() may be called from any thread.
//
// Between two ranks messages arrive in the order in which they were sent, and the k-th Send() to a rank meets its k-th
// Receive() from here; so no tags are needed as long as all ranks make the same calls in the same order.
//
// A watcher thread holds one never-answered receive per peer ("sentinel"). It is how a rank learns of every lost peer, not only of
// the ones it waits for just then, and how it is spared a Gloo fault: a receive that has begun is not told that its
// connection broke. A rank that leaves in order says goodbye first, by answering the sentinels. A rank that is broken closes
// all its connections, so that the news reaches everyone in one hop.
class GlooLinks {
 public:
  // A piece of the caller's memory that takes part in messages. Completions are counted, not named: the caller awaits as
  // many as it started; those of one peer come in order. When it is gone, Gloo no longer touches the memory.
  class Region {
   public:
    Region(GlooLinks& links, void* data, size_t bytes);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    // Start a message and return at once. Nothing about the memory may change until it was awaited.
    //   Unavailable: the connection to `peer` is gone.   Otherwise as GlooLinks::status().
    absl::Status Send(int peer, size_t offset, size_t bytes);
    absl::Status Receive(int peer, size_t offset, size_t bytes);

    // Wait for one message started here; `peer` is named in the error if it does not come.
    //   DeadlineExceeded; Unavailable: a connection is gone.   Otherwise as GlooLinks::status().
    absl::Status AwaitSent(int peer, absl::Time deadline);
    absl::Status AwaitReceived(int peer, absl::Time deadline);

   private:
    friend class GlooLinks;
    absl::Status Await(bool sent, int peer, absl::Time deadline);

    GlooLinks& links_;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  };

  // REQUIRES: Start() is called once before anything else.
  GlooLinks(std::unique_ptr<GlooMesh> mesh, int rank, int size);
  // Says goodbye, unless broken.
  ~GlooLinks();

  absl::Status Start();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // OK while usable; then why it no longer is. An Aborted stays; any other reason is replaced by a later one, which knows more.
  absl::Status status() const;

  // Makes every wait, now and later, return status(). Does not block. REQUIRES: !why.ok()
  void Break(const absl::Status& why);

 private:
  void Watch();
  void CloseConnections();
  bool SaidGoodbye(int peer) const;
  // "rank 2" or "rank 2, 3" of those whose connection is broken although they didn't say goodbye; "" if there are none.
  std::string DescribeLost();
  std::string DescribeLeft();

  const std::unique_ptr<GlooMesh> mesh_;
  const int rank_;
  const int size_;

  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<Region*> regions_ ABSL_GUARDED_BY(mutex_);

  // Sentinels: goodbyes_[r] becomes 1 when rank r says goodbye. Written by Gloo's thread.
  std::vector<char> goodbyes_;
  std::unique_ptr<gloo::transport::UnboundBuffer> sentinel_;
  std::thread watcher_;
};

}  // namespace hvd

#endif  // COLLECTIVES_GLOO_GLOO_LINKS_H_
