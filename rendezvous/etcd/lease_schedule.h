// The times at which a leader refreshes its lease, and at which it must give up. Pure.
#ifndef RENDEZVOUS_ETCD_LEASE_SCHEDULE_H_
#define RENDEZVOUS_ETCD_LEASE_SCHEDULE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace hvd::rendezvous::etcd {

class LeaseSchedule {
 public:
  // Of etcd's leases: after a leader's sudden end another follows as much later.
  static constexpr absl::Duration kLease = absl::Seconds(4);

  // `reattach`: how long agents and workers wait for a daemon that is away. A leader that etcd
  // does not answer gives up after half of it, so that they find another one in the other half. If
  // all of etcd is away there is none, and they wait for this one as long again. Not before the
  // lease has ended, because until then there can be no other.
  LeaseSchedule(absl::Duration reattach, absl::Time now)
      : patience_(std::max(kLease, reattach / 2)) {
    Refreshed(now);
  }

  // A refresh that was sent at this time has succeeded.
  void Refreshed(absl::Time sent) {
    next_ = sent + kLease / 4;
    end_ = sent + patience_;
  }
  void Failed(absl::Time now) { next_ = now + kRetry; }

  absl::Time next() const { return std::min(next_, end_); }
  bool IsOver(absl::Time now) const { return now >= end_; }
  absl::Duration patience() const { return patience_; }

 private:
  static constexpr absl::Duration kRetry = absl::Milliseconds(200);

  const absl::Duration patience_;
  absl::Time next_;
  absl::Time end_;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_LEASE_SCHEDULE_H_
