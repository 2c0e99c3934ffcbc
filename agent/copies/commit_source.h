// The source of copies of commits: gives the newest commit of this host's workers to the agent of
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
#include "base/fd.h"
#include "worker_runtime/commit_store/arena_view.h"

namespace hvd::agent::copies {

// Serves one keeper at a time, on a thread of its own; another one that comes takes its place while
// there is nothing to send. Thread-safe.
class CommitSource {
 public:
  // Takes a port at `address`, where nobody is answered yet. `bytes_per_second` is the most that is
  // sent.
  // Errors: those of net::ReserveAnyPort.
  static absl::StatusOr<std::unique_ptr<CommitSource>> Open(const std::string& address, Trust trust,
                                                            size_t bytes_per_second);
  ~CommitSource();

  // "address:port".
  const std::string& address() const { return address_; }

  // From now on it answers. Once only.
  // Errors:
  //   - Unavailable: it can't listen.
  absl::Status Begin(const std::string& job);

  // Has the commits in this arena, a memfd, copied, too. Borrowed only for the call. Offering one
  // again changes nothing.
  void Offer(int arena);

 private:
  using ArenaView = worker_runtime::commit_store::ArenaView;

  CommitSource(Fd listener, std::string address, Trust trust, size_t bytes_per_second);
  void Serve();
  absl::Status Answer(Channel& channel);
  absl::Status SendNewest(Channel& channel, uint64_t known);
  // The view with the newest commit of all that is newer than `known`; nullptr: there is none.
  ArenaView* FindNewer(uint64_t known, ArenaView::Commit* newest);
  bool SomebodyWaits() const;

  const Fd listener_;
  const std::string address_;
  const Trust trust_;
  const size_t bytes_per_second_;
  std::string job_;
  Cancellation ending_;
  absl::Mutex mutex_;
  // By the number of the offered descriptor, which stays open as long as its agent lives.
  std::map<int, std::unique_ptr<ArenaView>> arenas_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hvd::agent::copies

#endif  // AGENT_COPIES_COMMIT_SOURCE_H_
