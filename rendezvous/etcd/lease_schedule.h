// The schedule of a leader's lease: when to refresh it, and when to give up the leadership. Pure.
#ifndef RENDEZVOUS_ETCD_LEASE_SCHEDULE_H_
#define RENDEZVOUS_ETCD_LEASE_SCHEDULE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace hvd::rendezvous::etcd {

class LeaseSchedule {
 public:
  // The length of the lease in etcd: after a leader's crash, the next one leads this much later.
  static constexpr absl::Duration kLease = absl::Seconds(4);

  // `reattach` is how long agents and workers wait for a daemon that is away. A leader that gets no
  // answer from etcd gives up after half of that time, which leaves the other half for agents and
  // workers to find a new leader. It does not give up before its lease, counted from the last
  // refresh, has expired: until about then no other daemon can lead.
  LeaseSchedule(absl::Duration reattach, absl::Time now)
      : patience_(std::max(kLease, reattach / 2)) {
    Refreshed(now);
  }

  // A refresh that was sent at this time has succeeded. The lease counts from the sending: etcd
  // extended it no earlier than that.
  void Refreshed(absl::Time sent) {
    next_ = sent + kLease / 4;
    end_ = sent + patience_;
  }
  void Failed(absl::Time now) { next_ = now + kRetry; }

  absl::Time next() const { return std::min(next_, end_); }
  // The time limit of a call of a refresh: no refresh takes longer than this daemon may lead. One
  // that begins after that, as in a process that was suspended, still gets a moment.
  absl::Duration limit(absl::Time now) const { return std::clamp(end_ - now, kRetry, kLease); }
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
