// Waiting for the other ranks of a host, waking them, and the end of it all.
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
// Who waits looks for some microseconds, since the others are usually as far; then it sleeps until
// its bell is rung. Who has written something rings the bells of those who sleep: none, mostly, and
// then it costs a fence. A rank that dies is noticed by all others, by its process; where processes
// can't be watched by rank 0, whose sockets end with it, and rank 0's death by all others.
class ShmLinks {
 public:
  // How ranks wait.
  enum class Waiting {
    kSpin,   // every rank has a core
    kYield,  // ranks outnumber the cores
  };

  // ResourceExhausted, other codes of errno: no descriptor.
  static absl::StatusOr<std::unique_ptr<ShmLinks>> Make(segment::Meeting meeting, int rank,
                                                        int size);
  // Says that it leaves in good order, unless broken.
  ~ShmLinks();

  int rank() const { return rank_; }
  int size() const { return size_; }
  segment::Segment& segment() { return meeting_.segment; }
  segment::RankState& own_state() { return meeting_.segment.state(rank_); }
  Waiting waiting() const { return waiting_; }

  // Who is still waited for, -1: nobody. Asked again and again: a few loads.
  using Missing = absl::FunctionRef<int()>;
  // Waits until missing() says nobody.
  //   DeadlineExceeded; Unavailable: a rank is gone.   Otherwise as status(). The links are broken
  //   then.
  absl::Status Await(Missing missing, absl::Time deadline);

  // The parts of a wait, for those who wait for something else; see Mailbox.
  bool Look(absl::FunctionRef<bool()> ready);
  bool PrepareSleep(absl::FunctionRef<bool()> ready);
  // Thread-safe.
  void AwaitWake(absl::Duration timeout);
  void StayAwake();
  void TakeOver() { own_state().asleep.store(0, std::memory_order_relaxed); }
  void RingOwn() { Ring(rank_); }
  // Whether `peer` has died, as far as this rank has noticed.
  bool dead(int peer) const { return dead_[peer]; }

  // After something was written for `peer`, or for all others.
  void Notify(int peer);
  void NotifyAll();

  // OK while usable; then why it no longer is. An Aborted stays; any other reason is replaced by a
  // later one.
  absl::Status status() const;
  bool broken() const { return broken_.load(std::memory_order_relaxed); }
  // status(), with what other ranks have said. Two loads if all is well.
  absl::Status Check();
  // Makes every wait on every rank end, now and later. Does not block. `cause` is the rank that
  // peers will be told. REQUIRES: !why.ok()
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
