// A daemon's leadership of a job: which it is, and whether it is lost.
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

// Thread-safe. Once lost it stays lost.
class Leadership {
 public:
  // `revision`: that at which the key of the leader was made. No two leaderships of a job have the
  // same.
  Leadership(int64_t revision, int64_t lease, Clock& clock)
      : revision_(revision), lease_(lease), clock_(clock) {}

  int64_t revision() const { return revision_; }
  int64_t lease() const { return lease_; }

  // OK, or why it is lost.
  absl::Status state() const;

  // Only the first call counts.
  void Lose(const absl::Status& why);

  // Loses it without a call: this daemon leaves it by itself.
  void End();

  // `callback` is called once, from any thread, when it is lost; now if it is. Call once.
  void OnLost(std::function<void(const absl::Status& why)> callback);

  // Waits until it is lost or `deadline` has passed; returns whether it is lost.
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
