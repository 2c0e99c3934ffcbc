// The state of a daemon's leadership of a job: its identity, and whether it was lost.
#ifndef RENDEZVOUS_ETCD_LEADERSHIP_H_
#define RENDEZVOUS_ETCD_LEADERSHIP_H_

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace hvd::rendezvous::etcd {

// A lost leadership stays lost. Thread-safe.
class Leadership {
 public:
  // `revision` is the create_revision of the leader's key, which is unique among all leaderships of
  // a job.
  Leadership(int64_t revision, int64_t lease, Clock& clock)
      : revision_(revision), lease_(lease), clock_(clock) {}

  int64_t revision() const { return revision_; }
  int64_t lease() const { return lease_; }

  // OK, or why the leadership was lost.
  absl::Status state() const;

  // Marks it as lost and calls the callback of OnLost. Only the first call has an effect.
  void Lose(const absl::Status& why);

  // Marks it as lost without calling the callback: this daemon gives it up itself.
  void End();

  // Sets the callback for the loss: called once, from any thread; at once if it was lost already.
  // Call once.
  void OnLost(std::function<void(const absl::Status& why)> callback);

  // Blocks until it is lost or `deadline` has passed. Returns whether it is lost.
  bool AwaitLoss(absl::Time deadline) const;

  Clock& clock() const { return clock_; }

 private:
  const int64_t revision_;
  const int64_t lease_;
  Clock& clock_;
  mutable absl::Mutex mu_;
  absl::Status state_ ABSL_GUARDED_BY(mu_);
  std::function<void(const absl::Status&)> on_lost_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_LEADERSHIP_H_
