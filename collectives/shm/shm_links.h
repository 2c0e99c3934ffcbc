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
// it sleeps until its bell is rung. A rank that has written something rings the bells of the
// sleeping ranks. Usually none sleeps, and then the cost is a fence. All others notice a rank's
// death, by its process. Where processes can't be watched, rank 0 notices it by the rank's socket,
// and all others notice rank 0's death.
class ShmLinks {
 public:
  // The way ranks wait.
  enum class Waiting {
    kSpin,   // every rank has a core
    kYield,  // ranks outnumber the cores
  };

  // Errors:
  //   - ResourceExhausted, other codes of errno: no descriptor.
  static absl::StatusOr<std::unique_ptr<ShmLinks>> Make(segment::Meeting meeting, int rank,
                                                        int size);
  // Publishes that the rank leaves cleanly, unless broken.
  ~ShmLinks();

  int rank() const { return rank_; }
  int size() const { return size_; }
  segment::Segment& segment() { return meeting_.segment; }
  segment::RankState& own_state() { return meeting_.segment.state(rank_); }
  Waiting waiting() const { return waiting_; }

  // A rank that is still missing, -1: none. Called repeatedly: a few loads.
  using Missing = absl::FunctionRef<int()>;
  // Waits until missing() returns -1. The links are broken after an error.
  // Errors:
  //   - DeadlineExceeded: the deadline passed.
  //   - Unavailable: a rank is gone.
  //   - Others: those of status().
  absl::Status Await(Missing missing, absl::Time deadline);

  // The parts of a wait, for other conditions; see Mailbox.
  bool Look(absl::FunctionRef<bool()> ready);
  bool PrepareSleep(absl::FunctionRef<bool()> ready);
  // Thread-safe.
  void AwaitWake(absl::Duration timeout);
  void StayAwake();
  void TakeOver() { own_state().asleep.store(0, std::memory_order_relaxed); }
  void RingOwn() { Ring(rank_); }
  // Whether `peer` has died, as far as this rank has noticed.
  bool dead(int peer) const { return dead_[peer]; }

  // Call it after writing something for `peer`, or for all others.
  void Notify(int peer);
  void NotifyAll();

  // OK while usable; then the reason why it no longer is. An Aborted stays; any other reason is
  // replaced by a later one.
  absl::Status status() const;
  bool broken() const { return broken_.load(std::memory_order_relaxed); }
  // status(), including the other ranks' failures. Two loads if there is none.
  absl::Status Check();
  // Makes every wait on every rank end, now and later. Does not block. `cause` is the rank named to
  // the peers. REQUIRES: !why.ok()
  void Break(const absl::Status& why, int cause);

 private:
  ShmLinks(segment::Meeting meeting, int rank, int size, Fd epoll);

  void HandleEvent(uint64_t tag);
  void Ring(int rank);

  segment::Meeting meeting_;
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
