// The links interface: messages between the ranks of a group, with timeouts, abort, and detection
// of lost peers. Transports implement it; the algorithms call it.
#ifndef COLLECTIVES_LINKS_LINKS_H_
#define COLLECTIVES_LINKS_LINKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancellation.h"

namespace hvd::collectives::links {

// A part of the caller's memory that messages are sent from and received into. Completions are only
// counted: the caller awaits as many as it has started; those of one peer complete in order. Once
// the region is destroyed, its memory is no longer accessed; a region with messages that were not
// awaited may be destroyed only if the links are broken right afterwards.
class Region {
 public:
  virtual ~Region() = default;

  // Start a message and return at once. The memory must not change until the message was awaited.
  // Errors of both:
  //   - Unavailable: the connection to `peer` is gone.
  //   - Others: those of Links::status().
  virtual absl::Status Send(int peer, size_t offset, size_t bytes) = 0;
  virtual absl::Status Receive(int peer, size_t offset, size_t bytes) = 0;

  // Wait for the completion of one message that was started on this region.
  // Errors of both:
  //   - DeadlineExceeded: for `timeout`, nothing has moved over any link; names `peer`.
  //   - Unavailable: a connection is gone.
  //   - Others: those of Links::status().
  virtual absl::Status AwaitSent(int peer, absl::Duration timeout) = 0;
  virtual absl::Status AwaitReceived(int peer, absl::Duration timeout) = 0;
};

// One thread at a time connects and uses the regions; Break(), status() and OnBroken() may be
// called from any thread.
//
// Messages between two ranks arrive in the order of sending, and the k-th Send() to a rank matches
// its k-th Receive() from this rank. So no tags are needed as long as all ranks make the same calls
// in the same order.
//
// Failure detection: a rank detects every lost peer that it is linked with, not only those that it
// waits for. A rank that leaves sends one last message to its peers: a goodbye if it leaves
// cleanly, else the rank that caused the failure. After a failure it then closes its connections,
// so that its peers break in turn. So a failure spreads to all ranks, and each of them can name the
// rank that caused it, not only the peer whose connection was closed.
class Links {
 public:
  Links(int rank, int size) : rank_(rank), size_(size) {}
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  // Sends a goodbye, unless broken.
  virtual ~Links() = default;

  // The transport, for error messages and the timeline.
  virtual absl::string_view name() const = 0;
  int rank() const { return rank_; }
  int size() const { return size_; }

  // The region must not outlive the links.
  virtual std::unique_ptr<Region> MakeRegion(void* data, size_t bytes) = 0;

  // Links this rank with those of `peers` with which it is not linked yet. A region may be used
  // with linked peers only. Each of `peers` must make a matching call, with this rank among its
  // peers, before it links further ranks. Ended by `cancellation` or, if that is nullptr, by
  // Break().
  // Errors:
  //   - DeadlineExceeded, Unavailable, PermissionDenied: names the peer.
  //   - The cancellation's status, or status().
  virtual absl::Status Connect(absl::Span<const int> peers, absl::Duration timeout,
                               const Cancellation* cancellation) = 0;

  // See MeshCommunicator::CountMoves.
  void CountMoves(std::atomic<uint64_t>* counter) { moves_ = counter; }

  // OK until the links break, then the reason. An Aborted is never replaced; any other reason is
  // replaced by a later one, which is more precise.
  absl::Status status() const;

  // A rank that the network does not reach any more, if one is known.
  virtual std::optional<int> FindUnreached() { return std::nullopt; }
  bool broken() const { return is_broken_.load(std::memory_order_acquire); }

  // Makes all current and later waits return status(). Does not block. `cause` is the rank that the
  // last message to the peers names as the cause of the failure.
  // REQUIRES: !why.ok()
  void Break(const absl::Status& why, int cause);

  // Calls `listener` with the reason when the links break, on the thread that breaks them; at once
  // if they are broken. `listener` must not block or call this object. At most one can be set.
  void OnBroken(std::function<void(const absl::Status&)> listener);

 protected:
  // Called once, by Break(): ends current waits, and has the last message sent. Must not block.
  virtual void EndWaits(int cause) = 0;
  // To be called by the thread that waits, when something has moved.
  void CountMove() {
    if (moves_ == nullptr) return;
    moves_->store(moves_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Cancelled when the links break.
  const Cancellation& break_cancellation() const { return broken_; }

 private:
  const int rank_;
  const int size_;
  std::atomic<uint64_t>* moves_ = nullptr;
  std::atomic<bool> is_broken_{false};
  Cancellation broken_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const absl::Status&)> listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_LINKS_H_
