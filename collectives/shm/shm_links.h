// Wait/notify and failure propagation between the ranks of one host.
#ifndef COLLECTIVES_SHM_SHM_LINKS_H_
#define COLLECTIVES_SHM_SHM_LINKS_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "collectives/shm/segment/segment.h"
#include "collectives/shm/segment/segment_setup.h"

namespace hvd::collectives::shm {

// One thread at a time waits and notifies; Break() may be called from any thread.
//
// A waiting rank polls for some microseconds, since the others usually arrive by then; after that
// it sleeps until its bell (an eventfd) is rung. A rank that has written something rings the bells
// of the sleeping ranks. Usually none sleeps, and then a notification costs one memory fence.
//
// All ranks detect the death of a rank through its pidfd. Where the ranks can't watch each other's
// processes, a death is detected through the socket between rank 0 and each other rank, so only
// rank 0 detects the death of another rank, and all ranks detect that of rank 0.
class ShmLinks {
 public:
  // How ranks poll.
  enum class Waiting {
    kSpin,   // every rank has a core
    kYield,  // ranks outnumber the cores
  };

  // Errors:
  //   - ResourceExhausted, or another code for the errno: no file descriptor.
  static absl::StatusOr<std::unique_ptr<ShmLinks>> Make(segment::SegmentSetup setup, int rank,
                                                        int size);
  // Publishes that the rank leaves cleanly, unless broken.
  ~ShmLinks();

  int rank() const { return rank_; }
  int size() const { return size_; }
  segment::Segment& segment() { return setup_.segment; }
  segment::RankState& own_state() { return setup_.segment.state(rank_); }
  Waiting waiting() const { return waiting_; }

  // Returns a rank that the caller still waits for; -1: none. It is polled, so it must be fast: a
  // few loads.
  using Missing = absl::FunctionRef<int()>;
  // Waits until missing() returns -1. The links are broken after an error.
  // Errors:
  //   - DeadlineExceeded: for `timeout`, no rank has moved data elsewhere, either.
  //   - Unavailable: a rank is gone.
  //   - Others: those of status().
  absl::Status Await(Missing missing, absl::Duration timeout);

  // The parts of a wait, for other conditions than Await's; see Mailbox.
  bool Look(absl::FunctionRef<bool()> ready);
  bool PrepareSleep(absl::FunctionRef<bool()> ready);
  // Thread-safe.
  void AwaitWake(absl::Duration timeout);
  void StayAwake();
  // For poll: readable when AwaitWake would return. Borrowed.
  int wake_fd() const { return epoll_.get(); }
  void TakeOver() { own_state().asleep.store(0, std::memory_order_relaxed); }
  void RingOwn() { Ring(rank_); }
  // Whether this rank has detected the death of `peer`.
  bool dead(int peer) const { return dead_[peer]; }

  // Wake `peer`, or all other ranks, if they sleep. To be called after writing something that they
  // may wait for.
  void Notify(int peer);
  void NotifyAll();

  // OK until the links break, then the reason. An Aborted is never replaced; any other reason is
  // replaced by a later one.
  absl::Status status() const;
  bool broken() const { return broken_.load(std::memory_order_relaxed); }
  // Breaks the links if another rank has broken the group; returns status(). Costs two loads if
  // there is no failure.
  absl::Status Check();
  // Ends all current and later waits on every rank. Does not block. `cause` is the rank that is
  // published as the cause of the failure.
  // REQUIRES: !why.ok()
  void Break(const absl::Status& why, int cause);

 private:
  ShmLinks(segment::SegmentSetup setup, int rank, int size, Fd epoll);

  // Of all ranks. Changes when one of them moves data elsewhere.
  uint64_t MovesElsewhere();
  void HandleEvent(uint64_t tag);
  void Ring(int rank);

  segment::SegmentSetup setup_;
  const int rank_;
  const int size_;
  const Fd epoll_;
  const Waiting waiting_;
  std::vector<bool> dead_;  // by rank

  std::atomic<bool> broken_{false};
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SHM_LINKS_H_
