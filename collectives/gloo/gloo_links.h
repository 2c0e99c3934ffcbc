// The links between the ranks of a group over Gloo's TCP transport, as its public classes offer it.
#ifndef COLLECTIVES_GLOO_GLOO_LINKS_H_
#define COLLECTIVES_GLOO_GLOO_LINKS_H_

#include <cstdint>
#include <memory>
#include <thread>  // NOLINT: one thread that waits in Gloo
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/links/links.h"
#include "gloo/transport/context.h"
#include "gloo/transport/unbound_buffer.h"

namespace hvd::collectives::gloo {

// All ranks are linked from the start: Gloo has no other way. Gloo's connections are neither
// authenticated nor encrypted.
//
// Failure detection: a watcher thread keeps one pending receive per peer, the "sentinel", for the
// peer's last message. It fails when the connection breaks, and so it also ends waits for a receive
// of which a part has arrived when its connection breaks, which Gloo does not complete.
class GlooLinks : public links::Links {
 public:
  // `context` is connected with all peers.
  GlooLinks(std::shared_ptr<::gloo::transport::Context> context, int rank, int size);
  ~GlooLinks() override;

  // Posts the sentinels and starts the watcher. To be called once, before all other methods.
  // Errors:
  //   - Unavailable: names the peer that is gone.
  absl::Status Begin();

  absl::string_view name() const override { return "gloo"; }
  std::unique_ptr<links::Region> MakeRegion(void* data, size_t bytes) override;
  absl::Status Connect(absl::Span<const int> peers, absl::Duration timeout,
                       const Cancellation* cancellation) override {
    return status();
  }

 private:
  friend class GlooRegion;
  // The last message of a leaving rank: kGoodbye, or 1 + the rank that has caused the failure.
  using LastWord = int32_t;
  static constexpr LastWord kNothing = 0;
  static constexpr LastWord kGoodbye = -1;

  void EndWaits(int cause) override;

  void Watch();
  // Waits for one more last message. Returns false when the watcher has nothing more to do.
  bool WatchOnce();
  // Translates a failure of Gloo: if the links are not broken yet, finds the lost peer and breaks
  // them. Returns status().
  absl::Status Explain(const absl::Status& from_gloo);
  void BreakOverPeers(const absl::Status& waited);
  // The ranks whose connection is broken although they sent no last message.
  std::vector<int> FindLost();
  LastWord WordOf(int peer) const;
  void SayLastWord(LastWord word);
  void CloseConnections();

  const std::shared_ptr<::gloo::transport::Context> context_;
  std::vector<LastWord> landing_;  // by rank: what Gloo writes; read once it has arrived
  std::unique_ptr<::gloo::transport::UnboundBuffer> sentinel_;
  std::thread watcher_;

  mutable absl::Mutex mutex_;
  std::vector<::gloo::transport::UnboundBuffer*> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<LastWord> words_ ABSL_GUARDED_BY(mutex_);  // by rank: those that have arrived
  int cause_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_LINKS_H_
